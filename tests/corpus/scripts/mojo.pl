#!/usr/bin/perl
# Jobs on Mojolicious's event emitter. A callback that holds the job it belongs to is a circle, unless it holds it weakly.
use Mojo::Base -strict, -signatures;
use Mojo::EventEmitter;
use Mojo::IOLoop;
use Mojo::JSON qw(encode_json decode_json);
use Scalar::Util 'weaken';
my ($form, $seed) = @ARGV;
srand $seed;
my $pause = 0.04 + rand(0.03);
Mojo::IOLoop->recurring($pause => sub {
  my $job = Mojo::EventEmitter->new;
  $job->{rows} = decode_json(encode_json([map { {id => $_, name => "row $_ " . rand} } 1 .. 20 + int rand 30]));
  my $held = $job;
  weaken $held if $form eq 'steady';
  $job->on(finish => sub { $held->{done} = scalar @{$held->{rows}} });
  $job->emit('finish');
});
Mojo::IOLoop->start;
