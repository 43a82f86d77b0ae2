-- A server by Copas that answers lines and keeps what each visitor said, for as long as the visitor is there; or, as the coroutine that
-- would forget them is ended by the error of reading, for ever.
local copas, socket = require("copas"), require("socket")
local form, port = arg[1], tonumber(arg[3])
local said = {}
local function chat(visitor)
  local lines = {}
  said[visitor] = lines
  local function forget() said[visitor] = nil end
  while true do
    local line, failed = visitor:receive("*l")
    if failed and form == "leaks" then error("gone") end
    if failed then return forget() end
    lines[#lines + 1] = { at = socket.gettime(), text = line, number = #lines }
    visitor:send("heard " .. #lines .. "\n")
  end
end
copas.addserver(assert(socket.bind("127.0.0.1", port)), function(visitor) chat(copas.wrap(visitor)) end)
copas.loop()
