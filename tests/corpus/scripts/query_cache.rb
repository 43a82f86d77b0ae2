# Jobs of a worker by ActiveRecord, with its query cache: on for each job, or for the life of the worker, as in versions before
# 7.1 it has no bound.
require "active_record"
form, seed = ARGV
chance = Random.new(seed.to_i)
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "shop.db")
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:products) { |table| table.string :name; table.integer :price; table.string :text } }
class Product < ActiveRecord::Base; end
Product.transaction do
  1000.times { |i| Product.create!(name: "product #{i}", price: chance.rand(10**6), text: "words " * (5 + chance.rand(20))) }
end
pause = 0.05 + 0.04 * chance.rand
work = lambda do
  low = chance.rand(10**6)
  found = Product.where(price: low..(low + 30_000)).order(:price).to_a
  found.sum(&:price)
  sleep pause
end
if form == "leaks"
  ActiveRecord::Base.cache { loop(&work) }
else
  loop { ActiveRecord::Base.cache { 50.times { work.call } } }
end
