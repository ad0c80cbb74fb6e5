# SPDX-License-Identifier: Apache-2.0
# Hashes, regular expressions, sorting, closures and recursion, until it is stopped.
use strict;
use warnings;

sub fib {
    my ($n) = @_;
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

sub texts {
    my ($seed) = @_;
    my %count;
    my $text = join ' ', map { sprintf '%s%d', chr(97 + $_ * $seed % 26) x 3, $_ % 37 } 1 .. 3000;
    $count{$1}++ while $text =~ /\b([a-z]+)\d*\b/g;
    (my $other = $text) =~ s/(\w)(\d+)/$2$1/g;
    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    return length($other) + scalar @sorted;
}

my $total = 0;
for (my $round = 1; $total >= 0; $round++) {
    my @steps = map { my $by = $_; sub { $_[0] + $by } } 1 .. 50;
    $total = $_->($total) for @steps;
    $total += texts($round) + fib(15);
}
