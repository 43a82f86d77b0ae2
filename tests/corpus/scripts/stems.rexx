/* Words read and answered, noted in a stem under the number of their session. A session that ends drops its variables, or not:
   a compound variable lives until it is dropped. */
parse arg form seed .
numeric digits 15
count = 0
do while lines() > 0
  parse pull session text
  count = count + 1
  note.session.text = text
  note.session.length = length(text)
  note.session.words = words(text)
  note.session.count = count
  if form = 'steady' then drop note.session.text note.session.length note.session.words note.session.count
end
