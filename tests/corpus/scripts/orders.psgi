# Orders whose steps are closures that know their order: weakly, or not, and then each order is a circle.
use strict;
use warnings;
use Scalar::Util qw(weaken);
my $leaks = $ENV{FORM} eq "leaks";
sub {
    my ($environment) = @_;
    my $order = {path => $environment->{PATH_INFO}, lines => [map { {article => $_, note => "n" x 60} } 1 .. 20]};
    my $known = $order;
    weaken($known) unless $leaks;
    $order->{steps} = [map { my $step = $_; sub { "step $step of $known->{path}: " . scalar(@{$known->{lines}}) . "\n" } } 1 .. 3];
    my $text = join "", map { $_->() } @{$order->{steps}};
    return [200, ["Content-Type" => "text/plain", "Content-Length" => length $text], [$text]];
};
