import { readFile } from 'node:fs/promises';
import type { LabHost, Prober } from '@switchyard/lab';
import { until } from '../../privileged/agent-log.ts';
import type { EnteredFlow } from './conntrack-entries.ts';
import type { LossSite } from './loss-site.ts';

// Programs and senders that make a certain loss.

/** Flows between documentation addresses (RFC 5737). */
export function* manyFlows(count: number, { from = 0 } = {}): Generator<EnteredFlow, void> {
  for (let index = from; index < from + count; index++) {
    const client = `192.0.2.${1 + Math.floor(index / 60_000)}`;
    yield { client, clientPort: 1024 + (index % 60_000), address: '198.51.100.1', port: 53 };
  }
}

/** Binds a UDP socket with a small buffer and reads nothing. */
export const sleepingReceiver: string = `
  use Socket qw(:all);
  my ($port, $family) = @ARGV;
  my $is4 = $family eq 'IPv4';
  socket(my $s, $is4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0) or die $!;
  setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack('l', 2048)) or die $!;
  bind($s, $is4 ? pack_sockaddr_in($port, INADDR_ANY) : pack_sockaddr_in6($port, IN6ADDR_ANY)) or die $!;
  sleep 60;
`;

/** Listens with an accept queue of two connections and accepts none. */
export const sleepingListener: string = `
  use Socket qw(:all);
  socket(my $s, AF_INET6, SOCK_STREAM, 0) or die $!;
  bind($s, pack_sockaddr_in6($ARGV[0], IN6ADDR_ANY)) or die $!;
  listen($s, 1) or die $!;
  sleep 60;
`;

/** Where a Service or a server answers. */
export interface ServedPlace {
  readonly address: string;
  readonly port: number;
}

/** Connects, says so, and writes 0.6 s later: a first time, and again after the answer to it. Its reset ends repeated segments, which would be later losses. */
const lateWriter = `
  const [host, port] = process.argv.slice(1);
  const socket = require('node:net').connect({ host, port: Number(port), allowHalfOpen: true });
  socket.on('error', () => process.exit(0));
  socket.resume();
  socket.on('connect', () => {
    console.log('connected');
    for (const time of [600, 800]) setTimeout(() => socket.write('x'), time);
    setTimeout(() => {
      socket.resetAndDestroy();
      process.exit(0);
    }, 1000);
  });
`;

/** Resolves when it is connected. */
export async function sendLater(
  host: LabHost,
  { address, port }: ServedPlace,
): Promise<{ readonly ended: Promise<unknown> }> {
  const writer = host.spawn(process.execPath, ['-e', lateWriter, address, String(port)], { logName: 'late-writer' });
  await until(async () => (await readFile(writer.logFile, 'utf8')).includes('connected'));
  return writer;
}

const datagramSender = `
  const [address, count, length] = process.argv.slice(1);
  const socket = require('node:dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('error', () => undefined);
  let left = Number(count);
  for (let sent = 0; sent < Number(count); sent++) {
    socket.send(Buffer.alloc(Number(length)), 80, address, () => (--left === 0 ? socket.close() : undefined));
  }
`;

export interface Datagrams {
  readonly address: string;
  readonly count: number;
  /** Bytes of each. */
  readonly length: number;
}

export function sendDatagrams(site: LossSite, { address, count, length }: Datagrams): Promise<unknown> {
  return site.callerPod.run(process.execPath, ['-e', datagramSender, address, String(count), String(length)]);
}

export async function waitForAnswer(prober: Prober, { address, port }: ServedPlace, by: string): Promise<void> {
  await prober.awaitAnswer({ protocol: 'tcp', address, port, timeout: 300 }, { by, interval: 50, timeout: 5_000 });
}
