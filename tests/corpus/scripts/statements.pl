# Questions to SQLite by DBI, prepared once and kept by their text. The numbers are given with the question, or stand in its text: then
# each text is new, and the handle keeps its statement for ever.
use strict;
use warnings;
use DBI;
use Time::HiRes "sleep";
my ($form, $seed) = @ARGV;
srand $seed;
my $database = DBI->connect("dbi:SQLite:dbname=shop.db", "", "", {RaiseError => 1});
$database->do("create table orders(id integer primary key, customer integer, sum real, text)");
$database->begin_work;
my $insert = $database->prepare("insert into orders(customer, sum, text) values(?, ?, ?)");
$insert->execute(int rand 100, rand 1000, "w" x rand 100) for 1 .. 2000;
$database->commit;
my $pause = 0.03 + 0.01 * rand;
for (;;) {
  my ($low, $customer) = (int rand 1000000, int rand 100);
  my ($first, $second) = $form eq "leaks" ? ($low, $customer) : ("?", "?");
  my $question = $database->prepare_cached("select o.id, o.sum, (select max(p.sum) from orders p where p.id > o.id and p.id < o.id + 10) as most " .
    "from orders o where o.id > $first % 2000 and o.customer = $second order by o.id limit 5");
  $question->execute($form eq "leaks" ? () : ($low, $customer));
  $question->fetchall_arrayref;
  sleep($pause * (0.5 + rand));
}
