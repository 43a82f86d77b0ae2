-- LuaJIT with buffers from C's malloc, as its FFI gives them: freed when the packet is done, or left to a collector that
-- does not know them.
local ffi = require("ffi")
ffi.cdef [[
void *malloc(size_t size);
void free(void *memory);
int usleep(unsigned microseconds);
]]
local form, seed = arg[1], tonumber(arg[2])
math.randomseed(seed)
local pause = math.random(15000, 30000)
local recent = {}
while true do
  local size = math.random(500, 6000)
  local packet = ffi.cast("uint8_t *", ffi.C.malloc(size))
  ffi.fill(packet, size, math.random(0, 255))
  local sum = 0
  for i = 0, size - 1 do sum = (sum + packet[i]) % 65521 end
  recent[#recent + 1] = { sum = sum, text = ffi.string(packet, size) }
  if #recent > 400 then recent = {} end
  if form == "steady" then ffi.C.free(packet) end
  ffi.C.usleep(pause)
end
