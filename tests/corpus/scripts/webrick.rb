# A server that logs into memory: a ring, or all of it.
require "webrick"
form, _seed, port = ARGV
history = []
server = WEBrick::HTTPServer.new(Port: port.to_i, BindAddress: "127.0.0.1", AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount_proc("/") do |request, response|
  history << (request.path + "x" * 2000)
  history.shift if form == "steady" && history.size > 200
  response.body = history.last * 2
end
server.start
