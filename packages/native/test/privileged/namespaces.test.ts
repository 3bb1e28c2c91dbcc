import { readlinkSync } from 'node:fs';
import { millis, systemClock } from '@switchyard/core';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addressChanges,
  linkedNamespaces,
  MessageWriter,
  NativeError,
  type NetlinkSocket,
  openNetlinkSocket,
  readMessages,
} from '../../src/index.ts';

const { signal } = new AbortController();
const addressGroup = 5; // RTNLGRP_IPV4_IFADDR
const tablesGroup = 7; // NFNLGRP_NFTABLES
let lab: Lab;
let node: LabNode;
let netns: string;

beforeAll(async () => {
  lab = await createLab({ name: 'native', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = lab.nodes as [LabNode];
  netns = `/run/netns/${node.namespace}`;
});
afterAll(() => lab[Symbol.asyncDispose]());

async function ip(...args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await node.run('ip', args);
  if (exitCode !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}

function receivedBy(socket: NetlinkSocket): number {
  const buffer = new Uint8Array(65_536);
  let count = 0;
  while (socket.receive(buffer) !== undefined) count++;
  return count;
}

describe('a socket in a namespace', () => {
  test('gets the notifications of that namespace, and no other does', async () => {
    const buffer = Buffer.alloc(65_536);
    using inside = openNetlinkSocket({ protocol: 'route', netns, groups: [addressGroup] });
    using here = openNetlinkSocket({ protocol: 'route', groups: [addressGroup] });
    await ip('address', 'add', '192.0.2.77/32', 'dev', 'lo');
    expect(inside.receive(buffer)).toBeGreaterThan(16);
    expect(inside.receive(buffer)).toBeUndefined();
    expect(here.receive(buffer)).toBeUndefined();
  });

  test('leaves the thread that opened it where it was', () => {
    const before = readlinkSync('/proc/thread-self/ns/net');
    using inside = openNetlinkSocket({ protocol: 'route', netns });
    expect(inside.portId).toBeGreaterThan(0);
    expect(readlinkSync('/proc/thread-self/ns/net')).toBe(before);
  });

  test('tells when the kernel threw notifications away, and goes on afterwards', async () => {
    using socket = openNetlinkSocket({ protocol: 'route', netns, groups: [addressGroup], receiveBuffer: 1 });
    for (let last = 1; last <= 40; last++) await ip('address', 'add', `192.0.2.${last}/32`, 'dev', 'lo');
    let failure: unknown;
    let rest = 0;
    for (;;) {
      try {
        rest += receivedBy(socket);
        break;
      } catch (error) {
        failure = error;
      }
    }
    expect(failure).toBeInstanceOf(NativeError);
    expect(failure).toMatchObject({ errnoName: 'ENOBUFS', syscall: 'recvfrom' });
    expect(rest).toBeLessThan(40);
    await ip('address', 'delete', '192.0.2.1/32', 'dev', 'lo');
    expect(receivedBy(socket)).toBe(1);
  });

  test('may be given room for a message that is larger than the limits of the machine', () => {
    const writer = new MessageWriter();
    writer.beginMessage({ type: 16, flags: 0, sequence: 1 }); // no request: the kernel passes it over
    writer.raw(new Uint8Array(6 << 20));
    writer.endMessage();
    using small = openNetlinkSocket({ protocol: 'route', netns });
    using large = openNetlinkSocket({ protocol: 'route', netns, sendBuffer: 8 << 20 });
    expect(() => small.send(writer.bytes())).toThrow('sendto failed with EMSGSIZE');
    large.send(writer.bytes());
    expect(receivedBy(large)).toBe(0);
  });
});

describe('port ids to ignore', () => {
  /** Makes and deletes an nft table, as one transaction each. */
  function touchTables(socket: NetlinkSocket): void {
    for (const type of [0, 2]) {
      const writer = new MessageWriter();
      message(writer, 0x10, 10); // NFNL_MSG_BATCH_BEGIN, for NFNL_SUBSYS_NFTABLES
      message(writer, (10 << 8) | type, 0, () => writer.attributeText(1, 'touched'));
      message(writer, 0x11, 10);
      socket.send(writer.bytes());
    }
  }

  function message(writer: MessageWriter, type: number, resource: number, content = (): void => undefined): void {
    writer.beginMessage({ type, flags: 1, sequence: 1 });
    writer.netfilterHeader(type >= 0x100 ? 2 : 0, resource);
    content();
    writer.endMessage();
  }

  test('keep what these sockets caused away, and nothing else', () => {
    using ours = openNetlinkSocket({ protocol: 'netfilter', netns });
    using also = openNetlinkSocket({ protocol: 'netfilter', netns });
    using foreign = openNetlinkSocket({ protocol: 'netfilter', netns });
    const ignorePortIds = [also.portId, ours.portId];
    using watch = openNetlinkSocket({ protocol: 'netfilter', netns, groups: [tablesGroup], ignorePortIds });
    using all = openNetlinkSocket({ protocol: 'netfilter', netns, groups: [tablesGroup] });
    touchTables(ours);
    touchTables(also);
    expect(receivedBy(watch)).toBe(0);
    expect(receivedBy(all)).toBeGreaterThan(0);
    touchTables(foreign);
    const buffer = new Uint8Array(65_536);
    const [first] = readMessages(buffer.subarray(0, watch.receive(buffer)));
    expect(first?.portId).toBe(foreign.portId);
  });
});

test('addressChanges steps for an address and for a link', async () => {
  const stop = new AbortController();
  const state = { steps: 0 };
  const watching = (async () => {
    const changes = addressChanges({ clock: systemClock, netns }, stop.signal);
    while ((await changes.next()).done !== true) state.steps++;
  })();
  const settle = (): Promise<void> => systemClock.sleep(millis(600), signal);
  await settle();
  expect(state.steps).toBe(0);
  const changes: readonly (() => Promise<void>)[] = [
    () => ip('address', 'add', '192.0.2.200/32', 'dev', 'lo'),
    () => ip('link', 'add', 'one-end', 'type', 'veth', 'peer', 'name', 'other-end'),
    () => ip('link', 'delete', 'one-end'),
  ];
  for (const change of changes) {
    const before = state.steps;
    await change();
    await settle();
    expect(state.steps).toBeGreaterThan(before);
  }
  stop.abort();
  await watching;
});

test('finds the processes that are in a namespace that a device of the node leads into', async () => {
  const pod = await lab.addPod(node, 'linked');
  const programs = [pod, lab.apiServer].map((host) => host.spawn('sleep', ['60']));
  try {
    const [inPod = 0, elsewhere = 0] = programs.map(({ pid }) => pid);
    const ended = 4_194_305; // above the largest possible id
    const ownNamespace = readlinkSync('/proc/self/ns/net');
    for (const pid of [inPod, elsewhere]) {
      await expect.poll(() => readlinkSync(`/proc/${pid}/ns/net`)).not.toBe(ownNamespace);
    }
    expect(linkedNamespaces([inPod, elsewhere, process.pid, ended], netns)).toEqual(new Set([inPod]));
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
});
