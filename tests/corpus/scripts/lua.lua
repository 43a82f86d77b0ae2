-- Reads events from its input; sessions are closed, or somebody forgot to.
local form, seed = arg[1], tonumber(arg[2])
math.randomseed(seed)
local sessions, queue = {}, {}
for line in io.lines() do
  local id = line:match("id=(%d+)")
  sessions[id] = { line = line, parts = { line:sub(1, 20), line:reverse() } }
  queue[#queue + 1] = id
  if form == "steady" and #queue > 400 then sessions[table.remove(queue, 1)] = nil end
end
