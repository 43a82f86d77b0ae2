-- Visitors' sessions in a space, which a fiber sweeps every second. Guests have no time of their own: the sweep passes over that, or it
-- fails there, and with it the fiber ends, as nobody notices.
local form, seed, port = arg[1], tonumber(arg[2]), tonumber(arg[3])
local fiber = require("fiber")
local socket = require("socket")
box.cfg{memtx_memory = 256 * 1024 * 1024, wal_mode = "none", checkpoint_interval = 0, log_level = 0}
math.randomseed(seed)
local sessions = box.schema.space.create("sessions")
sessions:create_index("primary", {type = "hash", parts = {1, "string"}})
sessions:create_index("made", {type = "tree", unique = false, parts = {2, "number"}})

local function sweep(now)
  for _, one in sessions.index.made:pairs() do
    if one[2] > now - 5 then return end
    local touched = one[3].touched
    if form == "steady" and touched == nil then touched = one[2] end
    if touched + 5 < now then sessions:delete(one[1]) end
  end
end

fiber.create(function()
  while true do
    fiber.sleep(1)
    sweep(fiber.time())
  end
end)

socket.tcp_server("127.0.0.1", port, function(client)
  while true do
    local line = client:read("\n")
    if line == nil or line == "" then return end
    local name, text = line:match("^(%S+) (.*)\n$")
    local member = math.random(4) > 1
    sessions:replace{name, fiber.time(), {touched = member and fiber.time() or nil, text = text}}
    client:write(sessions:len() .. "\n")
  end
end)
