import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { EchoAnswer } from './probe-types.ts';
import { createServer as createHttpServer } from './lean-http.ts';
import type { LabHost, LabProcess } from './lab.ts';
import { nodeProgram } from './program-path.ts';

/** Identity and address of an echo server. */
export interface EchoIdentity {
  readonly pod: string;
  readonly node: string;
  /** Listen on this address only; undefined: on all, both families. */
  readonly host: string | undefined;
}

/** HTTP: `/` answers the echo object; `/readyz` answers 200, or 503 while not ready. Resolves when it listens. */
export async function serveHttp(
  port: number,
  identity: EchoIdentity,
  isReady: () => boolean = () => true,
): Promise<void> {
  const server = createHttpServer((request, response) => {
    response.setHeader('connection', 'close');
    if (request.url === '/readyz') {
      const ready = isReady();
      response.statusCode = ready ? 200 : 503;
      return response.end(ready ? 'ok\n' : 'not ready\n');
    }
    response.setHeader('content-type', 'application/json');
    response.end(describe('http', request.socket, identity));
  });
  await once(server.listen({ port, ...hostOf(identity) }), 'listening');
}

/** TCP: sends the echo object and a newline at once, then echoes its input. Resolves when it listens. */
export async function serveTcp(port: number, identity: EchoIdentity): Promise<void> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.write(describe('tcp', socket, identity));
    socket.pipe(socket);
  });
  await once(server.listen({ port, ...hostOf(identity) }), 'listening');
}

/** UDP: answers each datagram with the echo object. One socket per family, because a kernel may lack one of them. */
export async function serveUdp(port: number, identity: EchoIdentity): Promise<void> {
  const { pod, node, host } = identity;
  const types = host === undefined ? (['udp4', 'udp6'] as const) : ([host.includes(':') ? 'udp6' : 'udp4'] as const);
  const bind = (type: 'udp4' | 'udp6'): Promise<void> => {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('message', (_message, peer) => {
      const { address } = socket.address();
      const answer = { source: peer.address, sourcePort: peer.port, destination: address, destinationPort: port };
      const text = `${JSON.stringify({ pod, node, protocol: 'udp', ...answer } satisfies EchoAnswer)}\n`;
      socket.send(text, peer.port, peer.address);
    });
    return new Promise((resolve, reject) => {
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL') resolve();
        else reject(error);
      });
      socket.bind({ port, ...hostOf(identity) }, resolve);
    });
  };
  await Promise.all(types.map(bind));
}

function hostOf({ host }: EchoIdentity): { readonly host?: string; readonly address?: string } {
  return host === undefined ? {} : { host, address: host };
}

function describe(protocol: 'http' | 'tcp', socket: Socket, { pod, node }: EchoIdentity): string {
  const local = socket.address() as Partial<AddressInfo>;
  const answer: EchoAnswer = {
    pod,
    node,
    protocol,
    source: plain(socket.remoteAddress),
    sourcePort: socket.remotePort ?? 0,
    destination: plain(local.address),
    destinationPort: local.port ?? 0,
  };
  return `${JSON.stringify(answer)}\n`;
}

/** Removes the prefix that a dual-stack socket adds to IPv4 addresses. */
function plain(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}

/** Identity and ports of an echo server. */
export interface EchoServerOptions {
  readonly pod: string;
  readonly node?: string;
  readonly http?: readonly number[];
  readonly tcp?: readonly number[];
  readonly udp?: readonly number[];
  /** Seconds from its start during which `/readyz` answers 503. Default 0. */
  readonly readyAfter?: number;
  /** Seconds from SIGTERM to its exit, during which it serves. Default 0. */
  readonly delayShutdown?: number;
  /** Listen on this address only. Default: all, both families. */
  readonly host?: string;
}

/** Returns the command line of an echo server. */
export function echoServerCommand(options: EchoServerOptions): {
  readonly file: string;
  readonly args: readonly string[];
} {
  const repeated = (['http', 'tcp', 'udp'] as const).flatMap((name) =>
    (options[name] ?? []).flatMap((port) => [`--${name}`, String(port)]),
  );
  const single = {
    '--pod': options.pod,
    '--node': options.node,
    '--host': options.host,
    '--ready-after': options.readyAfter,
    '--delay-shutdown': options.delayShutdown,
  };
  const given = Object.entries(single).flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
  return { file: process.execPath, args: [...nodeProgram('echo-server'), ...repeated, ...given] };
}

/** Starts an echo server in `host`. It listens after about 0.1 s; a probe shows when. */
export function startEchoServer(host: LabHost, options: EchoServerOptions): LabProcess {
  const { file, args } = echoServerCommand(options);
  return host.spawn(file, args, { logName: 'echo' });
}
