import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  attachTc,
  type BpfLink,
  type BpfObject,
  type BpfProgram,
  createMap,
  detachClsact,
  findClsact,
  findMount,
  fingerprint,
  isBpffs,
  linkCgroup,
  linkInfo,
  listPins,
  loadBpfObject,
  MapWatch,
  mountBpffs,
  netnsCookie,
  openPinnedLink,
  openPinnedMap,
  pin,
  queryCgroup,
  unpin,
} from '../../src/index.ts';
import { queryTcx } from '../../src/testing/index.ts';
import { compileBpf } from '../compile-bpf.ts';

const { signal } = new AbortController();
const cgroup = `${findMount('cgroup2')}/swy-bpflinks-test`;
let lab: Lab;
let node: LabNode;
let netns: string;
let folder: string;
let bpffs: string;
let object: BpfObject;

beforeAll(async () => {
  lab = await createLab({ name: 'bpflinks', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = lab.nodes as [LabNode];
  netns = `/run/netns/${node.namespace}`;
  folder = mkdtempSync(`${tmpdir()}/swy-bpf-`);
  bpffs = `${folder}/bpffs`;
  object = loadBpfObject(compileBpf('bpf-programs', folder), { skip: ['broken'] });
  mkdirSync(cgroup, { recursive: true });
  mountBpffs(bpffs);
});
afterAll(async () => {
  object[Symbol.dispose]();
  execFileSync('umount', [bpffs]);
  rmSync(folder, { recursive: true });
  rmdirSync(cgroup);
  await lab[Symbol.asyncDispose]();
});

function program(name: string): BpfProgram {
  const found = object.programs.get(name);
  if (found === undefined) throw new Error(`no program ${name}`);
  return found;
}

/** Counts since the last call: calls of connect, packets of the first program, of the second. */
function counted(): readonly number[] {
  const counts = new BigUint64Array(object.maps.get('counts')!.values().buffer);
  const result = [...counts.subarray(0, 3)].map(Number);
  counts.fill(0n);
  return result;
}

/** Connects to a closed port of the loopback from a process in the cgroup and the node's namespace; prints errno's name. */
async function connectInCgroup(): Promise<string> {
  const connect = `require('net').connect(1, '127.0.0.1').on('error', (e) => console.log(e.code))`;
  const script = `echo $$ > ${cgroup}/cgroup.procs && exec ${process.execPath} -e "${connect}"`;
  return (await node.run('sh', ['-c', script])).stdout.trim();
}

/** Sends one packet over the namespace's loopback to an open port, so that no ICMP error follows. */
async function sendPacket(): Promise<void> {
  const script = `const s = require('dgram').createSocket('udp4');
    s.bind(9, '127.0.0.1', () => s.send('x', 9, '127.0.0.1')).on('message', () => s.close())`;
  expect(await node.run(process.execPath, ['-e', script])).toMatchObject({ exitCode: 0 });
}

/** Closes and detaches at the end of the test. */
function kept<Link extends BpfLink>(link: Link): Link {
  onTestFinished(() => {
    link.detach();
    link[Symbol.dispose]();
  });
  return link;
}

describe('a program at a hook of a cgroup', () => {
  test('runs for processes in it, until it is replaced or detached', async () => {
    counted();
    const link = kept(linkCgroup(program('count_connect'), cgroup, 'connect4'));
    expect([await connectInCgroup(), counted()[0]]).toEqual(['ECONNREFUSED', 1]);
    expect(queryCgroup(cgroup, 'connect4')).toEqual([{ id: program('count_connect').id, name: 'count_connect' }]);
    expect(queryCgroup(cgroup, 'connect6')).toEqual([]);
    link.update(program('refuse_connect'));
    expect(link.programId).toBe(program('refuse_connect').id);
    expect([await connectInCgroup(), counted()[0]]).toEqual(['ECONNREFUSED', 0]);
    expect(linkInfo(link)).toMatchObject({ isAttached: true });
    link.detach();
    link.detach();
    expect([linkInfo(link).isAttached, queryCgroup(cgroup, 'connect4')]).toEqual([false, []]);
  });

  test('is found from below where it is effective', () => {
    const below = `${cgroup}/below`;
    mkdirSync(below);
    onTestFinished(() => rmdirSync(below));
    kept(linkCgroup(program('count_connect'), cgroup, 'connect4'));
    expect(queryCgroup(below, 'connect4')).toEqual([]);
    expect(queryCgroup(below, 'connect4', { isEffective: true }).map(({ name }) => name)).toContain('count_connect');
  });

  test('loses it with the cgroup', async () => {
    const below = `${cgroup}/gone`;
    mkdirSync(below);
    using link = linkCgroup(program('count_connect'), below, 'connect4');
    rmdirSync(below);
    await expect.poll(() => linkInfo(link).isAttached).toBe(false);
  });

  test('lives on by a pin, and is found by it', async () => {
    const path = `${bpffs}/links/connect4`;
    const link = linkCgroup(program('count_connect'), cgroup, 'connect4');
    pin(link, path);
    link[Symbol.dispose]();
    using again = openPinnedLink(path);
    expect([again?.id, again?.programId]).toEqual([link.id, program('count_connect').id]);
    expect(queryCgroup(cgroup, 'connect4')).toHaveLength(1);
    again?.[Symbol.dispose]();
    expect([unpin(path), unpin(path)]).toEqual([true, false]);
    await expect.poll(() => queryCgroup(cgroup, 'connect4')).toEqual([]); // the kernel lets go of it a moment later
  });

  test('cannot be where no cgroup is', () => {
    expect(() => linkCgroup(program('count_connect'), `${cgroup}/none`, 'connect4')).toThrow(
      `cannot open the cgroup ${cgroup}/none: open failed with ENOENT`,
    );
    expect(() => linkCgroup(program('count_connect'), tmpdir(), 'connect4')).toThrow(
      `cannot attach the program count_connect to connect4 of the cgroup ${tmpdir()}: bpf LINK_CREATE failed with EBADF`,
    );
    expect(() => linkCgroup(program('first'), cgroup, 'connect4')).toThrow('bpf LINK_CREATE failed with EINVAL');
  });
});

describe.each(['tcx', 'clsact'] as const)('a program at an interface by %s', (mechanism) => {
  test('sees packets, until it is replaced or detached', async () => {
    const place = { ifindex: 1, netns };
    counted();
    const link = kept(attachTc(program('first'), place, { mechanism }));
    await sendPacket();
    expect([link.mechanism, link.programId, counted().slice(1)]).toEqual([mechanism, program('first').id, [1, 0]]);
    link.update(program('second'));
    await sendPacket();
    expect([link.programId, counted().slice(1)]).toEqual([program('second').id, [0, 1]]);
    link.detach();
    link.detach();
    await sendPacket();
    expect(counted().slice(1)).toEqual([0, 0]);
  });

  test('cannot be where no interface is', () => {
    const act = (): unknown => attachTc(program('first'), { ifindex: 4711, netns }, { mechanism });
    expect(act).toThrow(/cannot .* of the interface 4711 in .* failed with ENODEV/);
  });
});

test('programs at an interface are found with their links', () => {
  const link = kept(attachTc(program('first'), { ifindex: 1, netns }));
  expect(queryTcx({ ifindex: 1, netns })).toEqual([{ id: program('first').id, name: 'first', linkId: link.id }]);
  expect(linkInfo(link)).toMatchObject({ isAttached: true, ifindex: 1 });
  expect(queryTcx({ ifindex: 1 }).map(({ linkId }) => linkId)).not.toContain(link.id);
});

test('a filter of clsact outlives its process, and is replaced by attaching anew', async () => {
  const place = { ifindex: 1, netns };
  attachTc(program('first'), place, { mechanism: 'clsact' })[Symbol.dispose]();
  expect(findClsact(place)).toBe(program('first').id);
  const link = attachTc(program('second'), place, { mechanism: 'clsact' });
  counted();
  await sendPacket();
  expect(counted().slice(1)).toEqual([0, 1]);
  expect(() => pin(link, `${bpffs}/filter`)).toThrow('this map, program or link is not one of the kernel');
  expect([detachClsact(place), detachClsact(place), findClsact(place)]).toEqual([true, false, undefined]);
});

describe('pins', () => {
  const shape = {
    name: 'swy_pinned',
    type: 'hash',
    keySize: 4,
    valueSize: 8,
    maxEntries: 4,
    noPrealloc: true,
  } as const;

  test('keep a map, whatever its size, and refuse one of another kind', () => {
    const path = `${bpffs}/maps/one`;
    onTestFinished(() => void unpin(path));
    const map = createMap(shape);
    map.update(Uint8Array.of(1, 0, 0, 0), new Uint8Array(8).fill(7));
    pin(map, path);
    map[Symbol.dispose]();
    using again = openPinnedMap(path, { ...shape, name: 'other', maxEntries: 99 });
    expect([again?.id, again?.shape]).toEqual([map.id, shape]);
    expect(again?.lookup(Uint8Array.of(1, 0, 0, 0))).toEqual(new Uint8Array(8).fill(7));
    expect(() => openPinnedMap(path, { ...shape, valueSize: 4 })).toThrow(
      `the BPF map pinned at ${path} is hash with keys of 4 and values of 8 bytes, without preallocation, not hash with keys of 4 and values of 4 bytes, without preallocation`,
    );
    expect(openPinnedMap(`${path}x`)).toBeUndefined();
  });

  test('are replaced only with `replace`', () => {
    const path = `${bpffs}/maps/two`;
    onTestFinished(() => void unpin(path));
    using first = createMap(shape);
    using second = createMap(shape);
    pin(first, path);
    expect(() => pin(second, path)).toThrow(`cannot pin something at ${path}: bpf OBJ_PIN failed with EEXIST`);
    pin(second, path, { replace: true });
    using now = openPinnedMap(path);
    expect(now?.id).toBe(second.id);
    expect([listPins(`${bpffs}/maps`), listPins(`${bpffs}/none`)]).toEqual([['two'], []]);
  });

  test('keep a program', () => {
    const path = `${bpffs}/program`;
    onTestFinished(() => void unpin(path));
    pin(program('first'), path);
    expect(listPins(bpffs)).toContain('program');
  });

  test('need a bpffs, which is mounted once', () => {
    using map = createMap(shape);
    expect(() => pin(map, `${folder}/nowhere`)).toThrow(/cannot pin something at .*nowhere: bpf OBJ_PIN failed with E/);
    expect([isBpffs(bpffs), isBpffs(folder), isBpffs(`${folder}/none`), mountBpffs(bpffs)]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

test('network namespaces have cookies of their own', () => {
  const [here, there] = [netnsCookie(), netnsCookie(netns)];
  expect([here > 0n, there > 0n, here === there, netnsCookie(netns) === there]).toEqual([true, true, false, true]);
  expect(() => netnsCookie('/run/netns/swy-nobodys')).toThrow(
    'cannot read the cookie of the network namespace /run/netns/swy-nobodys: getsockopt SO_NETNS_COOKIE failed with ENOENT',
  );
});

describe('a fingerprint', () => {
  const shape = {
    name: 'printed',
    type: 'hash',
    keySize: 4,
    valueSize: 8,
    maxEntries: 8192,
    noPrealloc: true,
  } as const;
  const key = (number: number): Uint8Array => new Uint8Array(Uint32Array.of(number).buffer);
  const value = (number: number): Uint8Array => new Uint8Array(BigUint64Array.of(BigInt(number)).buffer);

  test('is the same until a link, an element or a name changes', async () => {
    using map = createMap(shape);
    for (let index = 0; index < 100; index++) map.update(key(index), value(index));
    const link = kept(linkCgroup(program('count_connect'), cgroup, 'connect4'));
    const folders = [`${bpffs}/printed`];
    mkdirSync(`${bpffs}/printed`);
    onTestFinished(() => rmdirSync(`${bpffs}/printed`));
    const read = (): bigint => fingerprint({ links: [link], maps: [map], folders });
    const changes: readonly (() => unknown)[] = [
      () => map.update(key(99), value(1)),
      () => map.update(key(100), value(100)),
      () => map.delete(key(0)),
      () => link.update(program('refuse_connect')),
      () => link.detach(),
      () => pin(map, `${bpffs}/printed/map`),
      () => unpin(`${bpffs}/printed/map`),
    ];
    const seen = [read()];
    for (const change of changes) {
      await new Promise((resolve) => setTimeout(resolve, 20)); // a tick of the clock for files
      expect(read()).toBe(seen.at(-1));
      change();
      seen.push(read());
    }
    expect(new Set(seen).size).toBe(seen.length);
  });

  test('of a large map is read in slices, and shows each write after all of them', () => {
    using map = createMap(shape);
    for (let index = 0; index < 5000; index++) map.update(key(index), value(index));
    const watch = new MapWatch();
    watch.read(map);
    const pass = (): readonly boolean[] => Array.from({ length: 3 }, () => watch.isSame(map));
    expect([pass(), pass()]).toEqual([
      [true, true, true],
      [true, true, true],
    ]);
    for (const change of [
      () => map.update(key(4000), value(1)),
      () => map.update(key(5000), value(1)),
      () => map.delete(key(7)),
    ]) {
      change();
      expect(pass()).toContain(false);
      watch.read(map);
      expect(pass()).not.toContain(false);
    }
    using other = createMap(shape);
    expect(watch.isSame(other)).toBe(false);
  });

  test('counts what cannot be read with its errno', () => {
    const before = fingerprint({ links: [], maps: [], folders: [`${bpffs}/absent`] });
    mkdirSync(`${bpffs}/absent`);
    expect(fingerprint({ links: [], maps: [], folders: [`${bpffs}/absent`] })).not.toBe(before);
    rmdirSync(`${bpffs}/absent`);
  });
});
