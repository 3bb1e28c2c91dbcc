# Sends TCP resets of connections that nobody has, each from a port of its own: for connection tracking they are INVALID.
#
#   invalid-sender.pl SOURCE DESTINATION COUNT
use strict;
use warnings;
use Socket;

my ($source, $destination, $count) = @ARGV;
socket(my $socket, AF_INET, SOCK_RAW, 255) or die "cannot open a raw socket: $!\n";
for my $n (0 .. $count - 1) {
  my $tcp = pack('n n N N C C n n n', 20_000 + $n, 80, 1, 0, 0x50, 0x04, 0, 0, 0);
  my $pseudo = inet_aton($source) . inet_aton($destination) . pack('C C n', 0, 6, length $tcp);
  my $sum = 0;
  $sum += $_ for unpack 'n*', $pseudo . $tcp;
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  substr($tcp, 16, 2) = pack 'n', ~$sum & 0xffff;
  my $ip = pack('C C n n n C C n a4 a4', 0x45, 0, 40, $n, 0, 64, 6, 0, inet_aton($source), inet_aton($destination));
  send($socket, $ip . $tcp, 0, pack_sockaddr_in(0, inet_aton($destination))) or die "cannot send packet $n: $!\n";
}
