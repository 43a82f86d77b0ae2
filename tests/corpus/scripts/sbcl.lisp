;; A table by object: a weak one was meant.
(let* ((arguments (cdr sb-ext:*posix-argv*))
       (leaks (string= (first arguments) "leaks"))
       (*random-state* (sb-ext:seed-random-state (parse-integer (second arguments))))
       (table (if leaks (make-hash-table :test 'eq) (make-hash-table :test 'eq :weakness :key))))
  (loop
    (dotimes (i 4)
      (let ((key (make-array (+ 50 (random 300)) :initial-element i)))
        (setf (gethash key table) (format nil "object ~a of ~a" i (length key)))))
    (make-string (random 200000) :initial-element #\x)
    (sleep (+ 0.02 (random 0.02)))))
