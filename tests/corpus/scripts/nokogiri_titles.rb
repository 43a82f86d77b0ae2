# Feeds that Nokogiri reads. Their titles are kept as text or as nodes, and a node keeps the whole document, which is libxml2's.
require "nokogiri"
form, seed = ARGV
chance = Random.new(seed.to_i)
titles = []
pause = 0.25 + 0.08 * seed.to_i
loop do
  items = Array.new(20 + chance.rand(120)) { |i| "<item id='#{i}'><name>name #{chance.rand(10**6)}</name><text>#{"words " * (1 + chance.rand(12))}</text></item>" }
  feed = Nokogiri::XML("<feed><title>feed #{chance.rand(10**6)}</title>#{items.join}</feed>")
  title = feed.at_xpath("//title")
  titles << (form == "leaks" ? title : title.text)
  titles.shift(1000) if form == "steady" && titles.size > 2000
  sleep pause * (0.5 + chance.rand)
end
