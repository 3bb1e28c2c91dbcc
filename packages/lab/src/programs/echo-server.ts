/**
 * A pod's program: says who it is and whom it sees, on any number of HTTP, TCP and UDP ports, both families.
 *
 *   --pod NAME --node NAME  [--http PORT]... [--tcp PORT]... [--udp PORT]...
 *   [--ready-after SECONDS] [--delay-shutdown SECONDS] [--host ADDRESS]
 *
 * HTTP: `/` answers the echo object, `/readyz` 200 or 503. TCP: the object and a newline at once, then echo. UDP: the
 * object for each datagram. SIGTERM: goes on serving for --delay-shutdown (default 0), then exits 0.
 */
import { createSocket } from 'node:dgram';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, isIPv6, type Socket } from 'node:net';
import { parseArgs } from 'node:util';
import type { EchoAnswer } from '../probe-types.ts';

const { values } = parseArgs({
  options: {
    pod: { type: 'string' },
    node: { type: 'string', default: '' },
    host: { type: 'string' },
    http: { type: 'string', multiple: true, default: [] },
    tcp: { type: 'string', multiple: true, default: [] },
    udp: { type: 'string', multiple: true, default: [] },
    'ready-after': { type: 'string', default: '0' },
    'delay-shutdown': { type: 'string', default: '0' },
  },
});
const pod = values.pod ?? 'unnamed';
const readyAt = performance.now() + Number(values['ready-after']) * 1000;

for (const port of values.http) serveHttp(Number(port));
for (const port of values.tcp) serveTcp(Number(port));
for (const port of values.udp) serveUdp(Number(port));
process.once('SIGTERM', () => setTimeout(() => process.exit(0), Number(values['delay-shutdown']) * 1000));
process.once('SIGINT', () => process.exit(0));

function serveHttp(port: number): void {
  const server = createHttpServer((request, response) => {
    const isReady = performance.now() >= readyAt;
    response.setHeader('connection', 'close');
    if (request.url === '/readyz') {
      response.statusCode = isReady ? 200 : 503;
      return response.end(isReady ? 'ok\n' : 'not ready\n');
    }
    response.setHeader('content-type', 'application/json');
    response.end(describe('http', request.socket));
  });
  server.listen({ port, ...(values.host === undefined ? {} : { host: values.host }) });
}

function serveTcp(port: number): void {
  const server = createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.write(describe('tcp', socket));
    socket.pipe(socket);
  });
  server.listen({ port, ...(values.host === undefined ? {} : { host: values.host }) });
}

/** One socket per family: a kernel without one of them must not cost the other. */
function serveUdp(port: number): void {
  const host = values.host;
  const types = host === undefined ? (['udp4', 'udp6'] as const) : ([isIPv6(host) ? 'udp6' : 'udp4'] as const);
  for (const type of types) {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EAFNOSUPPORT' && error.code !== 'EADDRNOTAVAIL') throw error;
    });
    socket.on('message', (_message, peer) => {
      const { address } = socket.address();
      const answer = { source: peer.address, sourcePort: peer.port, destination: address, destinationPort: port };
      socket.send(
        `${JSON.stringify({ pod, node: values.node, protocol: 'udp', ...answer } satisfies EchoAnswer)}\n`,
        peer.port,
        peer.address,
      );
    });
    socket.bind({ port, ...(host === undefined ? {} : { address: host }) });
  }
}

function describe(protocol: 'http' | 'tcp', socket: Socket): string {
  const local = socket.address() as Partial<AddressInfo>;
  const answer: EchoAnswer = {
    pod,
    node: values.node,
    protocol,
    source: plain(socket.remoteAddress),
    sourcePort: socket.remotePort ?? 0,
    destination: plain(local.address),
    destinationPort: local.port ?? 0,
  };
  return `${JSON.stringify(answer)}\n`;
}

/** Without the prefix that a dual-stack socket gives IPv4 peers. */
function plain(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}
