/* Lines of sessions, noted in a stem under the session's number. The stem is dropped after each three hundred, or never: what a compound
   variable holds stays until somebody drops it. */
parse arg form seed .
count = 0
do while lines() > 0
  parse pull session text
  count = count + 1
  note.session.text = text
  note.session.length = length(text)
  note.session.words = words(text)
  if form = 'steady' & count // 300 = 0 then drop note.
end
