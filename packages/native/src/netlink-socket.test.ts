import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { UsageError } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { errnoName, NativeError } from './native-error.ts';
import { MessageWriter } from './netlink/message-writer.ts';
import { readMessages } from './netlink/read-messages.ts';
import { type NetlinkOptions, openNetlinkSocket } from './netlink-socket.ts';

/** RTM_GETLINK for all links of the namespace: it has an answer on every machine, for everybody. */
function askForLinks(): Uint8Array {
  const writer = new MessageWriter();
  writer.beginMessage({ type: 18, flags: 0x301, sequence: 7 });
  writer.raw(new Uint8Array(16)); // struct ifinfomsg
  writer.endMessage();
  return writer.bytes();
}

function failureOf(act: () => unknown): NativeError {
  try {
    act();
  } catch (error) {
    if (error instanceof NativeError) return error;
    throw error;
  }
  throw new Error('did not fail');
}

/** Sockets and namespaces that this process holds; other test files of it have none. */
function held(): number {
  return readdirSync('/proc/self/fd').filter((fd) => /^(?:socket|net):/.test(linkOf(fd))).length;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return ''; // the one that listed the folder
  }
}

describe('a netlink socket', () => {
  test('speaks with the kernel: the answer is there when send returns', () => {
    using socket = openNetlinkSocket({ protocol: 'route' });
    const buffer = new Uint8Array(65_536);
    expect(socket.receive(buffer)).toBeUndefined();
    socket.send(askForLinks());
    const length = socket.receive(buffer);
    const [first] = readMessages(buffer.subarray(0, length));
    expect(first).toMatchObject({ type: 16, sequence: 7, portId: socket.portId });
  });

  test('has an address of its own', () => {
    using one = openNetlinkSocket({ protocol: 'route' });
    using two = openNetlinkSocket({ protocol: 'netfilter' });
    using three = openNetlinkSocket({ protocol: 'netfilter' });
    expect(one.portId).toBeGreaterThan(0);
    expect(three.portId).not.toBe(two.portId);
  });

  test('is awaited until something can be received, and not before', async () => {
    using socket = openNetlinkSocket({ protocol: 'route' });
    let isReadable = false;
    const readable = socket.readable(AbortSignal.timeout(5000)).then(() => {
      isReadable = true;
    });
    await setTimeout(50);
    expect(isReadable).toBe(false);
    socket.send(askForLinks());
    await readable;
    await socket.readable(AbortSignal.timeout(5000)); // it is not received yet
    expect(socket.receive(new Uint8Array(65_536))).toBeGreaterThan(0);
  });

  test('a wait for it ends when aborted and when it is closed', async () => {
    const stop = new AbortController();
    const socket = openNetlinkSocket({ protocol: 'route' });
    const aborted = socket.readable(stop.signal);
    const reason = new Error('enough');
    stop.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await expect(socket.readable(stop.signal)).rejects.toBe(reason);
    const waiting = socket.readable(AbortSignal.timeout(5000));
    socket[Symbol.dispose]();
    await expect(waiting).rejects.toThrow(UsageError);
    await expect(socket.readable(AbortSignal.timeout(5000))).rejects.toThrow(UsageError);
  });

  test('that waits in a worker does not keep the worker from ending', async () => {
    const addon = fileURLToPath(new URL('../build/switchyard_native.node', import.meta.url));
    const source = `
      const addon = require(${JSON.stringify(addon)});
      const { fd } = addon.openNetlink(0, '', [1], [], 0, 0);
      addon.awaitReadable(fd, () => undefined);
      require('node:worker_threads').parentPort.postMessage('waits');`;
    const worker = new Worker(source, { eval: true });
    await once(worker, 'message');
    expect(await worker.terminate()).toBe(1);
  });

  test('says so when a datagram does not fit, which is lost; the next one is received', () => {
    using socket = openNetlinkSocket({ protocol: 'route' });
    socket.send(askForLinks());
    const failure = failureOf(() => socket.receive(new Uint8Array(20)));
    expect(failure.errnoName).toBe('EMSGSIZE');
    expect(failure.message).toBe('cannot receive over netlink: recvfrom failed with EMSGSIZE');
    expect(socket.receive(new Uint8Array(65_536))).toBeGreaterThan(0);
  });

  test('refuses a message that no send buffer holds, and goes on', () => {
    using socket = openNetlinkSocket({ protocol: 'route' });
    const failure = failureOf(() => socket.send(new Uint8Array(64 << 20)));
    expect(failure).toMatchObject({ errnoName: 'EMSGSIZE', syscall: 'sendto', code: 'native.EMSGSIZE' });
    expect(failure.message).toBe(
      'cannot send 67108864 bytes over netlink: sendto failed with EMSGSIZE; open the socket with a larger send buffer, ' +
        'or send less at once',
    );
    socket.send(askForLinks());
    expect(socket.receive(new Uint8Array(65_536))).toBeGreaterThan(0);
  });

  test('can be closed twice', () => {
    const socket = openNetlinkSocket({ protocol: 'route' });
    const open = held();
    socket[Symbol.dispose]();
    socket[Symbol.dispose]();
    expect(held()).toBe(open - 1);
  });

  test('refuses to send and receive once it was closed', () => {
    const socket = openNetlinkSocket({ protocol: 'route' });
    socket[Symbol.dispose]();
    using other = openNetlinkSocket({ protocol: 'route' }); // has the number of the closed descriptor now
    expect(() => socket.send(askForLinks())).toThrow(UsageError);
    expect(() => socket.receive(new Uint8Array(10))).toThrow('this netlink socket was closed before');
    expect(other.receive(new Uint8Array(10))).toBeUndefined();
  });
});

describe('opening', () => {
  test.each<[string, NetlinkOptions, string]>([
    [
      'in a namespace that is not there',
      { protocol: 'netfilter', netns: '/run/netns/none-of-ours' },
      'cannot open a netlink socket (netfilter) in the network namespace /run/netns/none-of-ours: open failed with ENOENT',
    ],
    [
      'in a file that is no namespace',
      { protocol: 'netfilter', netns: '/proc/self/status' },
      'cannot open a netlink socket (netfilter) in the network namespace /proc/self/status: setns failed with EINVAL',
    ],
    [
      'with a group that the kernel does not have',
      { protocol: 'route', groups: [1, 4_000_000] },
      'cannot open a netlink socket (route): setsockopt NETLINK_ADD_MEMBERSHIP failed with EINVAL',
    ],
  ])('%s fails with what was tried on what, and leaves nothing open', (_, options, message) => {
    const open = held();
    for (let round = 0; round < 20; round++) expect(failureOf(() => openNetlinkSocket(options)).message).toBe(message);
    expect(held()).toBeLessThan(open + 20); // one of each round; Vitest may open a socket of its own
  });
});

test('an errno without a name is printed as a number', () => {
  expect([errnoName(2), errnoName(9999)]).toEqual(['ENOENT', 'errno 9999']);
});
