import { readFile } from 'node:fs/promises';
import { HostError, InvariantError, type IpFamily, millis, systemClock } from '@switchyard/core';
import type { LabPod, LabProcess } from '@switchyard/lab';
import { dataplaneNamed, type ScenarioService } from '@switchyard/scenarios';
import type { CaseRecorder } from '../../model/test-environment.ts';
import type { Sequence } from '../sequences/support/sequence-context.ts';

const targetPort = 8080;

/** Segments that an endpoint sends outside the window of its connection. */
export const straySegments: Sequence = {
  name: 'stray-segments',
  title:
    'a segment that belongs to no connection does not reach a client as if the endpoint had sent it to the client itself',
  why: 'kube-proxy: its iptables mode drops what connection tracking calls INVALID; else the client resets the connection',
  tags: ['tcp', 'invalid-packets'],
  needs: ['rawPackets'],
  notFor: (dataplane) => {
    if (dataplaneNamed(dataplane).invalidSegments === 'dropped') return undefined;
    return `not for ${dataplane}: only the iptables mode has a rule against them`;
  },
  async run(context) {
    const { lab, objects, record, signal } = context;
    const [node1, node2] = lab?.nodes ?? [];
    if (lab === undefined || node1 === undefined || node2 === undefined) {
      throw new InvariantError('this needs a lab of two nodes, and the environment says that it can send raw packets');
    }
    await context.begin({});
    const [client, endpoint] = [await lab.addPod(node1, 'stray-client'), await lab.addPod(node2, 'stray-server')];
    let serving: LabProcess | undefined;
    try {
      const { ipFamily } = objects;
      const service = objects.service();
      const far = { ...objects.endpoint(service, 'far'), ip: addressOf(endpoint, ipFamily) };
      await context.put({ services: [service], endpoints: [far] });
      serving = await serve(endpoint, ipFamily, signal);
      for (const check of await checksOf(client, { service, endpoint, ipFamily })) record.check(check);
    } finally {
      await serving?.stop(millis(0));
      await Promise.all([client, endpoint].map((pod) => lab.removePod(pod)));
    }
  },
};

function addressOf(pod: LabPod, ipFamily: IpFamily): NonNullable<LabPod['addresses'][IpFamily]> {
  const address = pod.addresses[ipFamily];
  if (address === undefined) throw new InvariantError(`the lab's ${pod.name} has no ${ipFamily} address`);
  return address;
}

async function serve(pod: LabPod, ipFamily: IpFamily, signal: AbortSignal): Promise<LabProcess> {
  const args = ['-e', strayProgram, 'serve', ipFamily, addressOf(pod, ipFamily), String(targetPort)];
  const serving = pod.spawn('perl', args, { logName: 'stray' });
  const until = systemClock.monotonic() + 10_000;
  for (let log = ''; !log.includes('ready'); log = await readFile(serving.logFile, 'utf8')) {
    if (systemClock.monotonic() > until) {
      throw new HostError('conformance.stray', `no server in ${pod.name} within 10 s; it said: ${log}`);
    }
    await systemClock.sleep(millis(20), signal);
  }
  return serving;
}

async function checksOf(
  client: LabPod,
  of: { readonly service: ScenarioService; readonly endpoint: LabPod; readonly ipFamily: IpFamily },
): Promise<readonly Parameters<CaseRecorder['check']>[0][]> {
  const { clusterIP } = of.service;
  const args = [of.ipFamily, clusterIP, '80', addressOf(of.endpoint, of.ipFamily)];
  const asked = await client.run('perl', ['-e', strayProgram, 'ask', ...args], { timeout: millis(20_000) });
  const strays = /^strays (\d+)$/m.exec(asked.stdout)?.[1];
  const what = `${client.name} to ${clusterIP}:80/TCP, whose endpoint sends segments outside the window`;
  if (strays === undefined) {
    const observed = `no connection: ${asked.stderr.trim()}`;
    return [{ id: 'the connection', what, expected: 'answered', observed, because: [] }];
  }
  const isAlive = asked.stdout.includes('alive');
  return [
    {
      id: 'segments outside the window',
      what,
      expected: 'none reaches the client',
      observed:
        strays === '0' ? 'none reaches the client' : 'some reach the client, from an address it has no connection to',
      because: [`${strays} of 4 did`],
    },
    {
      id: 'the connection',
      what: `${what}, and is asked once more`,
      expected: 'answered',
      observed: isAlive ? 'answered' : 'broken',
      because: [],
    },
  ];
}

/**
 * TCP segments that no connection expects, from a pod that has one. Perl, because Node has no raw sockets; as text for `perl -e`.
 *
 *     serve FAMILY OWN PORT                takes one connection; after its first line sends four segments from all quarters of the
 *                                          sequence numbers to where the client really is, then answers that line and the next
 *     ask FAMILY FRONTEND PORT ENDPOINT    connects, asks, and says how many segments reached it with ENDPOINT as their source, for
 *                                          which it has no connection: "strays N", then "alive" if the second line was answered
 */
export const strayProgram: string = String.raw`
use strict; use warnings; use Socket; $| = 1;
my ($mode, $family, @rest) = @ARGV;
my $af = $family eq 'IPv6' ? AF_INET6 : AF_INET;
sub bytes { return $af == AF_INET6 ? Socket::inet_pton(AF_INET6, $_[0]) : inet_aton($_[0]) }
sub address { my ($host, $port) = @_; return $af == AF_INET6 ? pack_sockaddr_in6($port, bytes($host)) : pack_sockaddr_in($port, bytes($host)) }
sub parts { my ($port, $ip) = $af == AF_INET6 ? unpack_sockaddr_in6($_[0]) : unpack_sockaddr_in($_[0]); return (Socket::inet_ntop($af, $ip), $port) }
sub raw_tcp { socket(my $socket, $af, SOCK_RAW, 6) or die "raw socket: $!"; return $socket }
sub sum { my ($data) = @_; my $sum = 0;
  $sum += $_ for unpack 'n*', length($data) % 2 ? "$data\0" : $data;
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  return ~$sum & 0xffff }
sub segment { my ($from, $from_port, $to, $to_port, $sequence, $text) = @_;
  my $bare = sub { pack('nnNNCCnnn', $from_port, $to_port, $sequence, 1, 0x50, 0x18, 8192, $_[0], 0) . $text };
  return $bare->(0) if $af == AF_INET6; # the kernel sums up
  return $bare->(sum(bytes($from) . bytes($to) . pack('nn', 6, 20 + length $text) . $bare->(0))) }
sub say_line { my ($socket, $text) = @_; syswrite $socket, "$text\n" }

alarm 20;
if ($mode eq 'serve') {
  my ($own, $port) = @rest;
  socket(my $listening, $af, SOCK_STREAM, 0) or die "socket: $!";
  setsockopt $listening, SOL_SOCKET, SO_REUSEADDR, 1;
  bind $listening, address($own, $port) or die "bind: $!";
  listen $listening, 5; print "ready\n";
  accept(my $connection, $listening) or die "accept: $!";
  my ($peer, $peer_port) = parts(getpeername $connection);
  my $asked = <$connection>;
  my $raw = raw_tcp();
  bind $raw, address($own, 0) or die "bind: $!";
  if ($af == AF_INET6) { setsockopt $raw, 41, 7, pack('i', 16) or die "checksum: $!" }
  for my $quarter (0 .. 3) {
    my $sent = segment($own, $port, $peer, $peer_port, $quarter * 0x40000000 + 77, "stray$quarter");
    defined send $raw, $sent, 0, address($peer, 0) or die "send: $!";
  }
  say_line($connection, 'sent');
  say_line($connection, 'answer') if defined <$connection>;
  exit 0;
}

my ($frontend, $port, $endpoint) = @rest;
my $raw = raw_tcp();
socket(my $connection, $af, SOCK_STREAM, 0) or die "socket: $!";
connect $connection, address($frontend, $port) or die "connect: $!";
say_line($connection, 'begin');
defined <$connection> or die 'the endpoint did not answer';
my ($strays, $until) = (0, time + 2);
while ((my $left = $until - time) > 0) {
  my $ready = ''; vec($ready, fileno($raw), 1) = 1;
  next unless select $ready, undef, undef, $left;
  my $sender = recv $raw, my $data, 2000, 0;
  $strays += 1 if defined $sender && $data =~ /stray\d/ && (parts($sender))[0] eq $endpoint;
}
print "strays $strays\n";
say_line($connection, 'again');
print defined <$connection> ? "alive\n" : "dead\n";
`;
