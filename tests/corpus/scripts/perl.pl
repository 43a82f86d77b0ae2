# A log reader. It leaks as Perl programs do: nodes that point at each other are never freed.
use strict; use warnings; use Time::HiRes qw(usleep);
my ($form, $seed) = @ARGV; srand($seed);
my %seen;
while (1) {
    my $request = { lines => [map { "GET /item/" . int(rand(5000)) . " " . "x" x rand(60) } 1 .. 20] };
    for (@{ $request->{lines} }) { $seen{$1}++ if m{/item/(\d+)} }
    my $answer = { request => $request };
    $request->{answer} = $answer if $form eq 'leaks';
    usleep(20_000 + rand(20_000));
}
