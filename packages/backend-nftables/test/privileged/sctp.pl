# SCTP without a kernel that has it: raw sockets, one INIT there, one ABORT back.
#   sctp.pl serve FAMILY                     prints "ready", then "SOURCE PORT" of the first INIT, after answering it
#   sctp.pl send FAMILY SOURCE DEST PORT     sends an INIT to DEST PORT, prints "answered DEST PORT" or "timeout"
use strict; use warnings; use Socket;
$| = 1;
my ($mode, $family, @rest) = @ARGV;
my $af = $family eq 'IPv6' ? AF_INET6 : AF_INET;
my $protocol = 132;

sub crc32c { my $crc = 0xffffffff;
  for my $byte (unpack 'C*', $_[0]) { $crc ^= $byte; $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8 }
  return $crc ^ 0xffffffff }
sub packet { my ($from, $to, $tag, $chunk) = @_;
  my $bare = pack('nnNN', $from, $to, $tag, 0) . $chunk;
  return pack('nnNV', $from, $to, $tag, crc32c($bare)) . $chunk }
sub address { my ($host, $port) = @_;
  return $af == AF_INET6 ? pack_sockaddr_in6(0, Socket::inet_pton(AF_INET6, $host)) : pack_sockaddr_in(0, inet_aton($host)) }
sub text { my ($sockaddr) = @_;
  return $af == AF_INET6 ? Socket::inet_ntop(AF_INET6, (unpack_sockaddr_in6($sockaddr))[1]) : inet_ntoa((unpack_sockaddr_in($sockaddr))[1]) }
sub payload { my ($data) = @_;
  return $data if $af == AF_INET6; # raw IPv6 sockets give no header
  return substr $data, 4 * (ord($data) & 15) }
sub receive { my ($socket, $seconds) = @_;
  my $ready = ''; vec($ready, fileno($socket), 1) = 1;
  return unless select $ready, undef, undef, $seconds;
  my $peer = recv $socket, my $data, 2000, 0;
  my ($from, $to, $tag, $sum, $type) = unpack 'nnNNC', payload($data);
  my ($initiate) = unpack 'N', substr(payload($data), 16, 4);
  return { peer => $peer, from => $from, to => $to, type => $type, tag => $initiate } }

socket(my $socket, $af, SOCK_RAW, $protocol) or die "raw socket: $!";
if ($mode eq 'serve') {
  print "ready\n";
  while (my $got = receive($socket, 30)) {
    next unless $got->{type} == 1 && $got->{to} == 8080;
    my $abort = packet(8080, $got->{from}, $got->{tag}, pack('CCn', 6, 0, 4));
    send $socket, $abort, 0, address(text($got->{peer})) or die "send: $!";
    print text($got->{peer}), " $got->{to}\n";
    exit 0;
  }
  exit 1;
}
my ($source, $dest, $port) = @rest;
bind $socket, address($source) or die "bind: $!";
my $own = 20000 + $$ % 20000;
my $init = pack('CCnNNnnN', 1, 0, 20, 0x01020304, 65535, 1, 1, 1);
send $socket, packet($own, $port, 0, $init), 0, address($dest) or die "send: $!";
while (my $got = receive($socket, 2)) {
  next unless $got->{type} == 6 && $got->{to} == $own;
  print "answered ", text($got->{peer}), " $got->{from}\n";
  exit 0;
}
print "timeout\n";
