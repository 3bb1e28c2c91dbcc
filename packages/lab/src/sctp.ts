import { readFile } from 'node:fs/promises';
import { HostError, ipFamilies, millis, systemClock } from '@switchyard/core';
import type { LabHost } from './lab.ts';

/**
 * SCTP for a machine whose kernel has none: raw sockets, one INIT out, one ABORT back with the server's name and the source address it received. Perl, because
 * Node has no raw sockets; it is on every Debian machine. As text, for `perl -e`: a compiled package has no other files.
 *
 *     serve FAMILY NAME   answers every INIT with "NAME PORT SOURCE", until killed
 *     send                for each line "ID FAMILY SOURCE DEST PORT COUNT" of its input, makes COUNT attempts side by side, and writes a
 *                         line "ID RESULT" for each: the answer, "refused", "timeout" or "error TEXT"
 */
export const sctpProgram: string = String.raw`
use strict; use warnings; use Socket; use Errno qw(ECONNREFUSED EINTR EPERM);
$| = 1;
my ($mode, $family, $name) = @ARGV;
my $af;
sub use_family { $af = $_[0] eq 'IPv6' ? AF_INET6 : AF_INET }

my @crcs = map { my $crc = $_; $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8; $crc } 0 .. 255;
sub crc32c { my $crc = 0xffffffff;
  $crc = $crcs[($crc ^ $_) & 255] ^ ($crc >> 8) for unpack 'C*', $_[0];
  return $crc ^ 0xffffffff }
sub packet { my ($from, $to, $tag, $chunk) = @_;
  my $bare = pack('nnNN', $from, $to, $tag, 0) . $chunk;
  return pack('nnNV', $from, $to, $tag, crc32c($bare)) . $chunk }
sub address { my ($host) = @_;
  return $af == AF_INET6 ? pack_sockaddr_in6(0, Socket::inet_pton(AF_INET6, $host)) : pack_sockaddr_in(0, inet_aton($host)) }
sub text { my ($sockaddr) = @_;
  return $af == AF_INET6 ? Socket::inet_ntop(AF_INET6, (unpack_sockaddr_in6($sockaddr))[1]) : inet_ntoa((unpack_sockaddr_in($sockaddr))[1]) }
sub payload { my ($data) = @_;
  return $data if $af == AF_INET6; # raw IPv6 sockets give no header
  return substr $data, 4 * (ord($data) & 15) }
sub parse { my ($data) = @_;
  my ($from, $to, $tag, $sum, $type, $flags, $length) = unpack 'nnNNCCn', $data;
  return { from => $from, to => $to, tag => $tag, type => $type, body => substr($data, 16, $length - 4) } }
sub raw_socket { socket(my $socket, $af, SOCK_RAW, 132) or die "raw socket: $!"; return $socket }

if ($mode eq 'serve') {
  use_family($family);
  my $socket = raw_socket();
  print "ready\n";
  while (defined(my $peer = recv $socket, my $data, 2000, 0)) {
    my $got = parse(payload($data));
    next unless $got->{type} == 1;
    my $source = text($peer);
    my $reason = "$name $got->{to} $source";
    my $cause = pack('nn', 12, 4 + length $reason) . $reason;
    my $chunk = pack('CCn', 6, 0, 4 + length $cause) . $cause . "\0" x (-length($cause) % 4);
    send $socket, packet($got->{to}, $got->{from}, unpack('N', $got->{body}), $chunk), 0, address($source);
  }
  die "receive: $!";
}

# The results of COUNT attempts. An ICMP error does not say which attempt it is about: it is the result of all that wait.
sub attempts { my ($base, $source, $dest, $port, $count) = @_;
  my $socket = raw_socket();
  bind $socket, address($source) or return ("error bind: $!") x $count;
  connect $socket, address($dest) or return ("error connect: $!") x $count; # ICMP errors come to connected sockets only
  my (%tags, @results);
  for my $index (1 .. $count) {
    my $own = 20000 + ($base + $index) % 40000;
    $tags{$own} = ($$ << 8) + $index;
    my $init = pack('CCnNNnnN', 1, 0, 20, $tags{$own}, 65535, 1, 1, 1);
    # The sender's own kernel reports a dropped packet with EPERM; after a reject the ICMP error follows.
    defined send $socket, packet($own, $port, 0, $init), 0 or $! == EPERM or $! == ECONNREFUSED or return ("error send: $!") x $count;
  }
  my $quarters = 8; # of a second without anything; of a pause of the whole process one counts
  while (%tags && $quarters > 0) {
    my $ready = ''; vec($ready, fileno($socket), 1) = 1;
    if (!select $ready, undef, undef, 0.25) { $quarters--; next }
    if (!defined recv $socket, my $data, 2000, 0) {
      push @results, ($! == ECONNREFUSED ? 'refused' : "error $!") x keys %tags;
      %tags = ();
    } else { my $got = parse(payload($data));
      # The tag is unique; before connect a socket also receives packets for other sockets, perhaps with the same port.
      next unless $got->{type} == 6 && exists $tags{$got->{to}} && $got->{tag} == $tags{$got->{to}};
      delete $tags{$got->{to}};
      push @results, substr($got->{body}, 4) }
  }
  return (@results, ('timeout') x keys %tags) }

$SIG{CHLD} = 'IGNORE';
my $base = $$ * 997; # no port is used again soon: its flow would go on where it went before
while (defined(my $line = <STDIN>)) {
  my ($id, $of, @request) = split ' ', $line;
  $base += $request[3];
  next if fork;
  use_family($of);
  syswrite STDOUT, "$id $_\n" for attempts($base - $request[3], @request); # short writes are not mixed with those of others
  exit 0;
}
`;

/** Starts SCTP servers on all ports of a host in both families; they answer with `name`. Resolves when they are ready. */
export async function startSctpServers(host: LabHost, name: string, signal: AbortSignal): Promise<void> {
  const servers = ipFamilies.map((family) =>
    host.spawn('perl', ['-e', sctpProgram, 'serve', family, name], { logName: 'sctp' }),
  );
  const until = systemClock.monotonic() + 10_000;
  for (const { logFile } of servers) {
    for (let log = ''; !log.includes('ready'); log = await readFile(logFile, 'utf8')) {
      if (systemClock.monotonic() > until)
        throw new HostError('lab.sctp', `no SCTP server in ${host.name} within 10 s; it said: ${log}`);
      await systemClock.sleep(millis(20), signal);
    }
  }
}
