#!/usr/bin/perl
# Joins two tun devices, one in this network namespace and one in another, and says "ready":
#   tun-relay.pl NAME OTHER_NAMESPACE OTHER_NAME
use strict;
use warnings;

my ($name, $namespace, $other) = @ARGV;
use constant { TUNSETIFF => 0x400454ca, IFF_TUN => 0x0001, IFF_NO_PI => 0x1000, SYS_setns => 308, CLONE_NEWNET => 0x40000000 };

sub tun {
  open(my $file, '+<', '/dev/net/tun') or die "cannot open /dev/net/tun: $!\n";
  my $request = pack('Z16 S x22', $_[0], IFF_TUN | IFF_NO_PI);
  ioctl($file, TUNSETIFF, $request) or die "cannot make the device $_[0]: $!\n";
  return $file;
}

my $here = tun($name);
open(my $there_namespace, '<', $namespace) or die "cannot open $namespace: $!\n";
syscall(SYS_setns, fileno($there_namespace), CLONE_NEWNET) == 0 or die "cannot enter $namespace: $!\n";
my $there = tun($other);
$| = 1;
print "ready\n";

for (;;) {
  my ($in, $packet) = ('');
  vec($in, fileno($_), 1) = 1 for ($here, $there);
  select($in, undef, undef, undef) > 0 or next;
  for ([$here, $there], [$there, $here]) {
    my ($from, $to) = @$_;
    next unless vec($in, fileno($from), 1) && sysread($from, $packet, 65536);
    syswrite($to, $packet); # refused while a device is down
  }
}
