import { release } from 'node:os';
import { systemClock } from '@switchyard/core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readKernel } from '../../src/kernel/adopt.ts';
import type { Change, Element } from '../../src/render/elements.ts';
import { hex } from '../../src/render/elements.ts';
import { elementObjects } from '../../src/render/names.ts';
import { createNetlinkTransport } from '../../src/kernel/netlink/netlink-transport.ts';
import { objectsOf } from '../../src/render/rules/model.ts';
import { skeleton, skeletonDigest } from '../../src/render/skeleton.ts';
import { printChanges } from '../../src/testing/print-changes.ts';
import { added, classes, contents, NetlinkSite, sorted, table } from './netlink-site.ts';
import { signal } from './support.ts';

let site: NetlinkSite;
const write = (changes: readonly Change[]): Promise<void> => site.write(changes);

beforeAll(async () => {
  site = await NetlinkSite.create('nftn');
});

afterAll(() => site[Symbol.asyncDispose]());

beforeEach(() => site.reset());

const everyKind: readonly Element[] = [
  { id: 'frontends4 10.96.0.3 . tcp . 80', data: '0x12300001' },
  { id: 'frontends6 fd00:10:96::3 . udp . 65535', data: '0xfffffffe' },
  { id: 'nodeports4 sctp . 30080', data: '0x0' },
  { id: 'nodeports6 tcp . 1', data: '0x4500002' },
  { id: 'to-cluster4 0x1', data: '0x300002' },
  { id: 'to-cluster6 0x7ffff', data: '0x40000001' },
  { id: 'to-local4 0x1', data: '0x100003' },
  { id: 'to-local6 0x2', data: '0x100005' },
  { id: 'endpoints4 0x2 . 0', data: '10.244.1.5 . 8080' },
  { id: 'endpoints4 0xffffe . 65535', data: '255.255.255.255 . 65535' },
  { id: 'endpoints6 0x2 . 1', data: '1:0:0:2::3 . 53' },
  { id: 'endpoints6 0x2 . 0', data: '::1 . 53' },
  { id: 'aff-endpoints4 0x100002', data: '10.244.1.5 . 8080' },
  { id: 'aff-endpoints6 0x100002', data: 'fd00:10:244:1::5 . 8080' },
  { id: 'aff-slots4 0x2 . 7', data: '0x100002' },
  { id: 'aff-slots6 0x2 . 0', data: '0x100002' },
  { id: 'hairpin4 10.244.1.5 . 10.244.1.5 . tcp . 8080', data: '' },
  { id: 'hairpin6 fd00::5 . fd00::5 . sctp . 8080', data: '' },
  { id: 'cluster-ips4 10.96.0.3', data: '' },
  { id: 'cluster-ips6 2001:db8:0:1:1:1:1:1', data: '' },
  { id: 'fw-allow4 192.0.2.1 . tcp . 80 . 10.1.9.0/24', data: '' },
  { id: 'fw-allow4 192.0.2.2 . tcp . 80 . 0.0.0.0/0', data: '' },
  { id: 'fw-allow4 192.0.2.1 . tcp . 80 . 198.51.100.7/32', data: '' },
  { id: 'fw-allow6 2001:db8::1 . udp . 53 . fd00:8::/29', data: '' },
];

const settings: readonly Change[] = [
  { kind: 'replace', object: 'pod-cidrs4', content: ['10.0.0.0/9', '10.128.0.0/9', '192.0.2.1/32', '255.0.0.0/8'] },
  { kind: 'replace', object: 'pod-cidrs6', content: ['::/0'] },
  { kind: 'replace', object: 'pod-interfaces4', content: ['"cni0"', '"veth*"'] },
  { kind: 'replace', object: 'pod-interfaces6', content: ['"a23456789012345"', '"b2345678901234*"'] },
  { kind: 'replace', object: 'nodeport-ips4', content: ['0.0.0.0/0'] },
  { kind: 'replace', object: 'nodeport-ips6', content: ['2001:db8::/32', 'fd00::1/128', 'ff00::/8'] },
  { kind: 'replace', object: 'service-cidrs4', content: [] },
];

describe('what netlink writes', () => {
  test('is read back alike, for every object of both families', async () => {
    await write([...classes, ...settings, ...everyKind.map((element): Change => ({ kind: 'add', ...element }))]);
    const read = await contents(site.netlink);
    const elements = elementObjects.flatMap((object) => [...(read[`${object}4`] as []), ...(read[`${object}6`] as [])]);
    expect(elements.sort()).toEqual(sorted(everyKind));
    for (const change of settings) {
      if (change.kind === 'replace') expect(read[change.object]).toEqual(change.content);
    }
    expect(read['classes4']).toContainEqual([300, 'lb4-300']);
    expect(read['classes6']).toContainEqual([999, 'lb6-999']);
    expect(await site.nft('list', 'ruleset')).toContain('numgen random mod 999');
  });

  test('nft can have written as well', async () => {
    const changes = [...settings, ...everyKind.map((element): Change => ({ kind: 'add', ...element }))];
    await site.nftScript(printChanges(table, changes));
    const byNft = await contents(site.netlink);
    await site.netlink.deleteTable(table, signal);
    await site.netlink.loadRules('cannot load', skeleton(table), signal);
    await write(changes);
    expect(await contents(site.netlink)).toEqual(byNft);
  });

  test('can be deleted again, all of it', async () => {
    await write(everyKind.map((element): Change => ({ kind: 'add', ...element })));
    await write(everyKind.map(({ id }): Change => ({ kind: 'delete', id })));
    for (const [object, elements] of Object.entries(await contents(site.netlink))) {
      if (!object.startsWith('classes')) expect(elements).toEqual([]);
    }
  });

  test('may be there already, if it is the same', async () => {
    const same = [added('cluster-ips4 10.96.0.3'), added('to-cluster4 0x1', '0x300002')];
    await write(same);
    await write(same);
    expect(await site.netlink.readElements({ table, object: 'to-cluster', suffix: '4' }, signal)).toHaveLength(1);
  });

  test('replaces a value by deleting and adding one key', async () => {
    await write([added('to-cluster4 0x1', '0x300002')]);
    await write([{ kind: 'delete', id: 'to-cluster4 0x1' }, added('to-cluster4 0x1', '0x400002')]);
    expect(await site.netlink.readElements({ table, object: 'to-cluster', suffix: '4' }, signal)).toEqual([
      { id: 'to-cluster4 0x1', data: '0x400002' },
    ]);
  });
});

describe('tables', () => {
  test('are found with their birthmark, without one, and not at all', async () => {
    await site.nft('add', 'table', 'inet', 'switchyard-2');
    expect(await site.netlink.findTable(table, signal)).toEqual({ birthmarks: [skeletonDigest()] });
    expect(await site.netlink.findTable('switchyard-2', signal)).toEqual({ birthmarks: undefined });
    expect(await site.netlink.findTable('switchyard-3', signal)).toBeUndefined();
  });

  test('have objects, which can be emptied', async () => {
    await write([...settings, added('cluster-ips4 10.96.0.3'), added('to-cluster6 0x1', '0x300002')]);
    const listed = await site.netlink.listObjects(table, signal);
    const objects = objectsOf(skeleton(table)).map(({ kind, name }) => `${kind} ${name}`);
    expect(listed.map(({ kind, name }) => `${kind} ${name}`)).toEqual(objects);
    const inUse = listed.filter(({ isEmpty, name }) => !isEmpty && /[46]$/.test(name));
    expect(inUse.map(({ name }) => name).sort()).toEqual([
      'cluster-ips4',
      'nodeport-ips4',
      'nodeport-ips6',
      'pod-cidrs4',
      'pod-cidrs6',
      'pod-interfaces4',
      'pod-interfaces6',
      'to-cluster6',
    ]);
    await site.netlink.flushObjects(table, inUse, signal);
    const left = (await site.netlink.listObjects(table, signal)).filter(
      ({ isEmpty, name }) => !isEmpty && /[46]$/.test(name),
    );
    expect(left).toEqual([]);
  });

  test('are deleted; one that is not there is a refusal', async () => {
    await site.netlink.deleteTable(table, signal);
    expect(await site.nft('list', 'tables')).toBe('');
    await expect(site.netlink.deleteTable(table, signal)).rejects.toMatchObject({ refusal: 'missing' });
    await expect(site.netlink.listObjects(table, signal)).rejects.toMatchObject({ refusal: 'missing' });
    expect(await site.netlink.readElements({ table, object: 'frontends', suffix: '4' }, signal)).toBeUndefined();
    expect(await site.netlink.readIntervals({ table, object: 'pod-cidrs', suffix: '4' }, signal)).toBeUndefined();
    expect(await site.netlink.readClasses(table, '4', signal)).toEqual(new Map());
  });

  test('of other families and names are left alone', async () => {
    await site.nft('add', 'table', 'ip', table);
    await site.netlink.deleteTable(table, signal);
    expect(await site.nft('list', 'tables')).toBe('table ip switchyard\n');
  });
});

describe('a large table', () => {
  const slot = (index: number): Element => ({
    id: `endpoints4 0x${(index + 1).toString(16)} . 0`,
    data: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255} . 8080`,
  });
  const slots = Array.from({ length: 100_000 }, (_, index) => slot(index));

  async function readSlots(): Promise<readonly Element[]> {
    const from = { transport: site.netlink, table, family: 'IPv4', clock: systemClock } as const;
    const kernel = await readKernel(from, signal);
    return [...kernel.slots].map(([set, [data = '']]) => ({ id: `endpoints4 ${hex(set)} . 0`, data }));
  }

  beforeEach(() => write(slots.map((element): Change => ({ kind: 'add', ...element }))));

  test('of 100,000 elements in one transaction is read back whole, right after it, and others get their turn', async () => {
    let turns = 0;
    let isReading = true;
    const count = (): void => {
      turns++;
      if (isReading) setImmediate(count);
    };
    setImmediate(count);
    const read = await readSlots();
    isReading = false;
    expect(sorted(read)).toEqual(sorted(slots));
    expect(turns).toBeGreaterThan(20);
  });

  test('is read slot by slot where its sets are known and the kernel has no other slots', async ({ skip }) => {
    const [major = 0, minor = 0] = release().split('.').map(Number);
    skip(
      major < 6 || (major === 6 && minor < 16),
      'before Linux 6.16 the kernel does not report the number of elements',
    );
    const map = { table, suffix: '4' } as const;
    const counts = new Map(slots.map((_, index) => [index + 1, 1]));
    expect(await site.netlink.readSlots(map, counts, signal)).toEqual(slots);
    expect(await site.netlink.readSlots(map, new Map(counts).set(1, 2), signal)).toBeUndefined(); // one too many
    counts.delete(7);
    expect(await site.netlink.readSlots(map, counts, signal)).toBeUndefined();
    counts.set(200_000, 1);
    expect(await site.netlink.readSlots(map, counts, signal)).toBeUndefined(); // as many, but not these
  });

  test('is read anew when another transport writes meanwhile', async () => {
    const other = site.open();
    const reading = readSlots();
    const late = [slot(200_000), slot(200_001)];
    for (const { id, data } of late) {
      await new Promise(setImmediate);
      await other.write('cannot try', { table, changes: [added(id, data)] }, signal);
    }
    expect(sorted(await reading)).toEqual(sorted([...slots, ...late]));
    await other[Symbol.asyncDispose]();
  });

  test('a write to the same transport waits for a read, and is not lost', async () => {
    const reading = site.netlink.readElements({ table, object: 'endpoints', suffix: '4' }, signal);
    const writing = write([added('cluster-ips4 10.96.0.3')]);
    expect(await reading).toHaveLength(100_000);
    await writing;
    expect(await site.netlink.readElements({ table, object: 'cluster-ips', suffix: '4' }, signal)).toHaveLength(1);
  });

  test('a read that is aborted leaves nothing behind that a later one could take for its own', async () => {
    const abort = new AbortController();
    const reading = site.netlink.readElements({ table, object: 'endpoints', suffix: '4' }, abort.signal);
    setImmediate(() => abort.abort(new Error('enough')));
    await expect(reading).rejects.toThrow('enough');
    expect(await site.netlink.readElements({ table, object: 'cluster-ips', suffix: '4' }, signal)).toEqual([]);
    expect(await site.netlink.readElements({ table, object: 'endpoints', suffix: '4' }, signal)).toHaveLength(100_000);
  });
});

describe('small buffers', () => {
  const many = Array.from({ length: 2000 }, (_, index) => added(`cluster-ips4 10.0.${index >> 8}.${index & 255}`));

  test('of the sender: a transaction that does not fit is refused whole, and said so; smaller ones go on', async () => {
    const small = site.open({ sendBuffer: 8192 });
    const error: unknown = await small.write('cannot try', { table, changes: many }, signal).catch((e: unknown) => e);
    expect(error).toMatchObject({ refusal: 'other' });
    expect((error as Error).message).toMatch(
      /cannot take \d+ bytes in one piece \(EMSGSIZE\); nothing of it took effect$/,
    );
    await small.write('cannot try', { table, changes: many.slice(0, 100) }, signal);
    expect(await site.netlink.readElements({ table, object: 'cluster-ips', suffix: '4' }, signal)).toHaveLength(100);
    await small[Symbol.asyncDispose]();
  });

  test('of the receiver: lost answers are an error and not a success, and the next write is understood', async () => {
    const small = site.open({ sendBuffer: 1 << 22, receiveBuffer: 1 });
    // Alternating, so that each is a message of its own with an answer of its own.
    const missing = many.flatMap((_, index): readonly Change[] => [
      { kind: 'delete', id: `to-cluster4 0x${(index + 1).toString(16)}` },
      { kind: 'delete', id: `to-local4 0x${(index + 1).toString(16)}` },
    ]);
    const error: unknown = await small
      .write('cannot try', { table, changes: missing }, signal)
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ errnoName: 'ENOBUFS', syscall: 'recvfrom' });
    await small.write('cannot try', { table, changes: many.slice(0, 100) }, signal);
    expect(await small.readElements({ table, object: 'cluster-ips', suffix: '4' }, signal)).toHaveLength(100);
    await small[Symbol.asyncDispose]();
  });
});

test('two transports at once do not take each other’s answers', async () => {
  const [one, two] = [site.open(), site.open()];
  for (let round = 0; round < 50; round++) {
    const id = `to-cluster4 0x${(round + 1).toString(16)}`;
    const writing = [one, two].map((transport, index) =>
      transport.write('cannot try', { table, changes: [added(id, `0x${index + 1}`)] }, signal),
    );
    const [first, second] = await Promise.allSettled(writing);
    expect([first?.status, second?.status]).toEqual(['fulfilled', 'rejected']);
  }
  for (const transport of [one, two]) await transport[Symbol.asyncDispose]();
});

test('after disposal it refuses', async () => {
  const transport = site.open();
  await transport[Symbol.asyncDispose]();
  await expect(transport.findTable(table, signal)).rejects.toThrow('the transport was disposed');
});

test('a namespace that is not there is an error of opening', () => {
  expect(() => createNetlinkTransport({ netns: '/run/netns/swy-nowhere' })).toThrow(
    /cannot open a netlink socket \(netfilter\) in the network namespace \/run\/netns\/swy-nowhere: open failed with ENOENT/,
  );
});
