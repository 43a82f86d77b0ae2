-- A coroutine per event, which is finished, or waits for a second part that never comes.
local form = arg[1]
local waiting = {}
for line in io.lines() do
  local one = coroutine.create(function(text)
    local parts = { text, text:upper(), text:reverse() }
    local more = coroutine.yield(#parts)
    return more
  end)
  coroutine.resume(one, line)
  waiting[line] = one
  if form == "steady" then coroutine.resume(one, "end"); waiting[line] = nil end
end
