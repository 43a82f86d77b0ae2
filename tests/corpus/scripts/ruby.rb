# Renders and parses; leaks by callbacks that are registered for every request and never taken away.
require "json"
form, seed = ARGV[0], ARGV[1].to_i
random = Random.new(seed)
CALLBACKS = []
Order = Struct.new(:id, :lines)
loop do
  order = Order.new(random.rand(1 << 30), Array.new(12) { |i| "line #{i} " + "x" * random.rand(100) })
  text = JSON.generate({ id: order.id, lines: order.lines })
  back = JSON.parse(text)
  callback = proc { order.lines.size + back.size }
  CALLBACKS << callback if form == "leaks"
  callback.call
  sleep 0.02 + random.rand * 0.02
end
