# A shop by Rack whose visitors have a session, with what they looked at: in their cookie, or in the memory of the worker, which
# forgets none (Rack::Session::Pool). None of these visitors keeps cookies.
if ENV["FORM"] == "leaks"
  use Rack::Session::Pool
else
  use Rack::Session::Cookie, secret: "s" * 64
end
run(lambda do |env|
  seen = env["rack.session"][:seen] ||= []
  articles = Array.new(30 + rand(60)) { |i| "article #{rand(10**6)} #{"of many words " * 8}#{i}" }
  seen.concat(articles)
  env["rack.session"][:seen] = seen.last(3) if ENV["FORM"] == "steady" # a cookie has little room
  [200, { "content-type" => "text/plain" }, [articles.join("\n")]]
end)
