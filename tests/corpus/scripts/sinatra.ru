# Sessions in the server's memory, of clients that send no cookie: dropped when the page is done, or kept for ever.
require "sinatra/base"
require "rack/session/pool"

class Shop < Sinatra::Base
  use Rack::Session::Pool
  set :protection, false
  set :logging, false
  get "/*" do
    session[:cart] = Array.new(100) { |i| "item #{i} of #{request.path}" }
    request.session_options[:drop] = true if ENV["FORM"] == "steady"
    session[:cart].join(", ")
  end
end
run Shop
