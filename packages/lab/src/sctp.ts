import { readFile } from 'node:fs/promises';
import {
  HostError,
  type IpAddress,
  ipFamilies,
  type IpFamily,
  ipFamilyOf,
  millis,
  systemClock,
} from '@switchyard/core';
import type { LabHost } from './lab.ts';
import type { ProbeResult } from './probe-types.ts';

/**
 * SCTP for a machine whose kernel has none: raw sockets, one INIT out, one ABORT back with the server's name and the source address it received. Perl, because
 * Node has no raw sockets; it is on every Debian machine. As text, for `perl -e`: a compiled package has no other files.
 *
 *     serve FAMILY NAME                     answers every INIT with "NAME PORT SOURCE", until killed
 *     send FAMILY SOURCE DEST PORT COUNT    makes COUNT attempts side by side; a line for each: the answer, "refused" or "timeout"
 */
const sctpProgram: string = String.raw`
use strict; use warnings; use Socket; use Errno qw(ECONNREFUSED EINTR EPERM);
$| = 1;
my ($mode, $family, @rest) = @ARGV;
my $af = $family eq 'IPv6' ? AF_INET6 : AF_INET;

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
  my $socket = raw_socket();
  print "ready\n";
  while (defined(my $peer = recv $socket, my $data, 2000, 0)) {
    my $got = parse(payload($data));
    next unless $got->{type} == 1;
    my $source = text($peer);
    my $reason = "$rest[0] $got->{to} $source";
    my $cause = pack('nn', 12, 4 + length $reason) . $reason;
    my $chunk = pack('CCn', 6, 0, 4 + length $cause) . $cause . "\0" x (-length($cause) % 4);
    send $socket, packet($got->{to}, $got->{from}, unpack('N', $got->{body}), $chunk), 0, address($source);
  }
  die "receive: $!";
}

my ($source, $dest, $port, $count) = @rest;
my @children = map { my $index = $_;
  open(my $output, '-|') // die "fork: $!" or do { attempt($index); exit 0 };
  $output } 1 .. $count;
sub attempt { my ($index) = @_;
  my $socket = raw_socket();
  bind $socket, address($source) or die "bind: $!";
  connect $socket, address($dest) or die "connect: $!"; # ICMP errors come to connected sockets only
  my $own = 20000 + ($$ * 7 + $index) % 40000;
  my $init = pack('CCnNNnnN', 1, 0, 20, $$ + 1, 65535, 1, 1, 1);
  # The sender's own kernel reports a dropped packet with EPERM; after a reject the ICMP error follows.
  defined send $socket, packet($own, $port, 0, $init), 0 or $! == EPERM or die "send: $!";
  my $quarters = 8; # of a second without anything; of a pause of the whole process one counts
  while ($quarters > 0) {
    my $ready = ''; vec($ready, fileno($socket), 1) = 1;
    if (!select $ready, undef, undef, 0.25) { $quarters--; next }
    if (!defined recv $socket, my $data, 2000, 0) { print $! == ECONNREFUSED ? "refused\n" : "error $!\n"; return }
    else { my $got = parse(payload($data));
      # The tag is unique; before connect a socket also receives packets for other sockets, perhaps with the same port.
      next unless $got->{type} == 6 && $got->{to} == $own && $got->{tag} == $$ + 1;
      print substr($got->{body}, 4), "\n"; return }
  }
  print "timeout\n" }
print readline $_ for @children;
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

/** Source and destination of SCTP attempts. */
export interface SctpRequest {
  readonly source: string;
  readonly address: IpAddress;
  readonly port: number;
}

/** Makes `count` parallel attempts and returns them as probe results. */
export async function probeSctp(host: LabHost, request: SctpRequest, count: number): Promise<readonly ProbeResult[]> {
  const { source, address, port } = request;
  const family: IpFamily = ipFamilyOf(address);
  const args = ['-e', sctpProgram, 'send', family, source, address, String(port), String(count)];
  const { stdout, stderr } = await host.run('perl', args, { timeout: millis(20_000) });
  const lines = stdout.split('\n').filter((line) => line !== '');
  if (lines.length !== count) {
    const said = `${stdout}${stderr}`.trim();
    throw new HostError(
      'lab.sctp',
      `${count} SCTP attempts in ${host.name} gave ${lines.length} lines; perl said: ${said}`,
    );
  }
  return lines.map(resultOf);
}

function resultOf(line: string): ProbeResult {
  if (line === 'refused' || line === 'timeout') return { status: line, took: 0 };
  const [by, destinationPort, seenSource] = line.split(' ');
  if (by === 'error' || seenSource === undefined) return { status: 'unreachable', code: line, took: 0 };
  return {
    status: 'answered',
    took: 0,
    httpStatus: undefined,
    headers: {},
    body: JSON.stringify({ destinationPort: Number(destinationPort) }),
    by,
    node: undefined,
    seenSource,
    seenSourcePort: undefined,
  };
}
