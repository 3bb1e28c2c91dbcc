import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { Socket } from 'node:net';
import { type IpAddress, ipFamilyOf, type Millis, type Port, systemClock } from '@switchyard/core';

/** Where a probe comes from and goes to. */
export interface ProbeTarget {
  /** Path of the sender's network namespace. */
  readonly netns: string;
  readonly address: IpAddress;
  readonly port: Port;
  readonly protocol: 'TCP' | 'UDP';
  readonly timeout: Millis;
}

/**
 * Outcome of a probe. `answered`: TCP connected, or a datagram came back. `silent`: nothing came back in time, which for UDP may be the
 * application's choice. `failed`: the kernel reported an error, such as ECONNREFUSED; `code` is its name.
 */
export type ProbeOutcome = { readonly took: Millis } & (
  | { readonly status: 'answered' }
  | { readonly status: 'silent' }
  | { readonly status: 'failed'; readonly code: string }
);

type Ending = { readonly status: 'answered' } | { readonly status: 'failed'; readonly code: string };

/**
 * Connects once over TCP, or sends one empty datagram, from a network namespace. Sends no data. Rejects with `NativeError` if it may not
 * enter the namespace.
 */
export async function sendProbe(target: ProbeTarget): Promise<ProbeOutcome> {
  const { openNamespaceSocket } = await import('@switchyard/native');
  const { netns, address, protocol } = target;
  const fd = openNamespaceSocket({ netns, ipFamily: ipFamilyOf(address), protocol });
  const begin = systemClock.monotonic();
  const { promise, resolve } = Promise.withResolvers<Ending | { readonly status: 'silent' }>();
  const socket = target.protocol === 'TCP' ? connect(fd, target, resolve) : send(fd, target, resolve);
  const late = new AbortController();
  systemClock.sleep(target.timeout, late.signal).then(
    () => resolve({ status: 'silent' }),
    () => undefined, // answered before
  );
  try {
    const outcome = await promise;
    return { ...outcome, took: (systemClock.monotonic() - begin) as Millis }; // a difference of two
  } finally {
    late.abort();
    if (socket instanceof Socket) socket.destroy();
    else socket.close();
  }
}

function connect(fd: number, target: ProbeTarget, end: (ending: Ending) => void): Socket {
  const socket = new Socket({ fd });
  socket.on('error', (error) => end(failure(error)));
  socket.connect(target.port, target.address, () => end({ status: 'answered' }));
  return socket;
}

function send(fd: number, target: ProbeTarget, end: (ending: Ending) => void): UdpSocket {
  const socket = createSocket(ipFamilyOf(target.address) === 'IPv4' ? 'udp4' : 'udp6');
  socket.on('error', (error) => end(failure(error)));
  socket.on('message', () => end({ status: 'answered' }));
  socket.bind({ fd }, () => {
    socket.connect(target.port, target.address, () => {
      socket.send('', (error) => (error === null ? undefined : end(failure(error))));
    });
  });
  return socket;
}

function failure(error: NodeJS.ErrnoException): Ending {
  return { status: 'failed', code: error.code ?? error.message };
}
