;; Temporary buffers that are killed, or only left.
(let ((form (nth 0 command-line-args-left)) (seed (nth 1 command-line-args-left)))
  (random seed)
  (while t
    (let ((buffer (generate-new-buffer "work")))
      (with-current-buffer buffer
        (insert (make-string (+ 500 (random 4000)) ?x))
        (goto-char (point-min))
        (while (search-forward "xxxxxxxxxx" nil t) (replace-match "some words")))
      (when (equal form "steady") (kill-buffer buffer)))
    (sleep-for 0.04)))
