;; Events as a lazy sequence. Whoever gives its beginning a name keeps every event that has been read.
(let [[form seed] *command-line-args*
      random (java.util.Random. (Long/parseLong seed))
      pause (+ 40 (.nextInt random 30))
      event (fn [] {:id (.nextLong random) :tags (vec (repeatedly 200 #(str "tag " (.nextInt random 1000000))))})
      read-all (fn [events] (doseq [e events] (count (:tags e)) (Thread/sleep pause)))]
  (if (= form "leaks")
    (do (def events (repeatedly event))
        (read-all events))
    (read-all (repeatedly event))))
