# Sends UDP datagrams from raw sockets, each the first packet of a flow of its own, and prints the nanoseconds of CPU time that
# took this process. The kernel does everything up to the last device within the system call, so that is the whole way.
#
#   raw-sender.pl SOURCE COUNT SERVICES
#
# Service i has the address 10.0.0.0 + i, port 80. Source ports tell the flows apart, so COUNT is at most 60000.
use strict;
use warnings;
use Socket;

my ($source, $count, $services) = @ARGV;
my @packets;
my @places;
for my $n (0 .. $count - 1) {
  my $address = pack('N', (10 << 24) + ($n * 7919) % $services);
  my $ip = pack('C C n n n C C n a4 a4', 0x45, 0, 28, $n & 0xffff, 0, 64, 17, 0, inet_aton($source), $address);
  push @packets, $ip . pack('n n n n', 1024 + $n, 80, 8, 0);
  push @places, pack_sockaddr_in(0, $address);
}
socket(my $socket, AF_INET, SOCK_RAW, 255) or die "cannot open a raw socket: $!\n";

sub cpu {
  open(my $file, '<', '/proc/self/schedstat') or die "cannot read schedstat: $!\n";
  return (split ' ', <$file>)[0];
}

my $start = cpu();
for my $n (0 .. $count - 1) {
  send($socket, $packets[$n], 0, $places[$n]) or die "cannot send packet $n: $!\n";
}
print cpu() - $start, "\n";
