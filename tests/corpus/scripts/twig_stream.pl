# A feed of orders as one long XML document on standard input, with a handler for each order. What has been handled is purged, or it
# stays in the tree until the document ends.
use strict;
use warnings;
use XML::Twig;
my ($form, $seed) = @ARGV;
my $sum = 0;
my $twig = XML::Twig->new(twig_handlers => {order => sub {
  my ($tree, $order) = @_;
  $sum += $_->att("price") for $order->children("line");
  $tree->purge if $form eq "steady";
}});
$twig->parse(\*STDIN);
