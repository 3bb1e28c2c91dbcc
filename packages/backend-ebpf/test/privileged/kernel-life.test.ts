import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { IpFamily } from '@switchyard/core';
import { type CgroupHook, loadBpfObject, openPinnedLink, openProgramById, queryCgroup } from '@switchyard/native';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hooksOf, type MapSet } from '../../src/kernel/kernel.ts';
import type { LinuxKernel } from '../../src/kernel/programs/linux-kernel.ts';
import { mapNames } from '../../src/kernel/programs/map-sets.ts';
import { objectFile } from '../../src/kernel/programs/object-files.ts';
import { largerOf, tinySizes as tiny } from './kernel-sizes.ts';
import { KernelSite } from './kernel-site.ts';

const signal = new AbortController().signal;
let site: KernelSite;

beforeAll(() => {
  site = new KernelSite('life');
});
afterAll(() => {
  site[Symbol.dispose]();
});

/** Ids of the programs at all hooks of the cgroup, by hook. */
function attached(cgroup = site.cgroup): Readonly<Record<string, readonly number[]>> {
  return Object.fromEntries(
    hooksOf.IPv4.map((hook) => [hook, queryCgroup(cgroup, hook).map(({ id }) => id)]).filter(
      ([, ids]) => ids?.length !== 0,
    ),
  );
}

/** Content of the bpffs; the kernel has two files of its own in each. */
function ownFolders(): readonly string[] {
  return readdirSync(site.bpffs).filter((name) => !name.endsWith('.debug'));
}

function pinsOf(family: IpFamily, version = 1): readonly string[] {
  const folder = join(site.bpffs, 'switchyard', `v${version}-${family.toLowerCase()}`);
  return readdirSync(folder).flatMap((name) => readdirSync(join(folder, name)).map((pin) => `${name}/${pin}`));
}

/** Whether every program at the cgroup uses the maps of the set. */
function usesOnly(maps: MapSet): boolean {
  const ids = new Set(mapNames.map((name) => maps[name].id));
  return Object.values(attached())
    .flat()
    .every((id) => {
      using program = openProgramById(id);
      // The map of constants is a program's own.
      return program !== undefined && program.mapIds.filter((one) => !ids.has(one)).length === 1;
    });
}

async function started(
  options: Parameters<KernelSite['kernel']>[0] = {},
): Promise<{ kernel: LinuxKernel; maps: MapSet; isNew: boolean; writes: number }> {
  const kernel = site.kernel(options);
  const { maps, isNew } = await kernel.openMaps(tiny, signal);
  return { kernel, maps, isNew, writes: await kernel.attach(signal) };
}

const key = new Uint8Array(24).fill(7);

describe('one family in the kernel', () => {
  test('is made, found again as it is, and taken away', async () => {
    const first = await started();
    expect([first.isNew, first.writes, usesOnly(first.maps)]).toEqual([true, 8, true]);
    expect(Object.keys(attached()).sort()).toEqual([...hooksOf.IPv4].sort());
    expect(pinsOf('IPv4')).toEqual([
      ...hooksOf.IPv4.toSorted().map((hook) => `links/${hook}`),
      ...mapNames.toSorted().map((name) => `maps/${name}`),
    ]);
    const before = attached();
    await first.kernel[Symbol.asyncDispose]();
    const second = await started();
    expect([second.isNew, second.writes, attached(), await second.kernel.findFaults(signal)]).toEqual([
      false,
      0,
      before,
      [],
    ]);
    expect(await second.kernel.remove(signal)).toEqual([
      `eBPF programs and maps of IPv4 pinned in ${site.bpffs}/switchyard/v1-ipv4`,
    ]);
    expect([attached(), ownFolders(), await second.kernel.remove(signal)]).toEqual([{}, [], []]);
  });

  test('shares nothing with the other', async () => {
    const v4 = await started();
    const v6 = await started({ ipFamily: 'IPv6' });
    expect([v6.writes, attached()['connect6']?.length, attached()['connect4']?.length]).toEqual([4, 2, 1]);
    await v4.kernel.remove(signal);
    expect([Object.keys(attached()).sort(), await v6.kernel.findFaults(signal)]).toEqual([
      [...hooksOf.IPv6].sort(),
      [],
    ]);
    await v6.kernel.remove(signal);
    expect(ownFolders()).toEqual([]);
  });

  test('gets programs with other constants by an update of its links', async () => {
    const all = await started();
    const before = attached();
    await all.kernel[Symbol.asyncDispose]();
    const host = await started({ socketLb: 'host' });
    expect([host.isNew, host.writes]).toEqual([false, 8]);
    const now = attached();
    for (const hook of hooksOf.IPv4)
      expect([hook, now[hook]?.length, now[hook]?.[0] === before[hook]?.[0]]).toEqual([hook, 1, false]);
    await host.kernel.remove(signal);
  });

  test('leaves nothing open where maps cannot be made or cannot grow', async () => {
    const openFiles = (): number => readdirSync('/proc/self/fd').length;
    const before = openFiles();
    const impossible = site.kernel();
    for (let round = 0; round < 3; round++)
      await expect(impossible.openMaps({ ...tiny, slots: 0 }, signal)).rejects.toThrow(/slots/);
    expect(openFiles()).toBe(before);
    const { kernel } = await started();
    await kernel[Symbol.asyncDispose]();
    const broken = site.kernel({ object: '/nowhere.bpf.o' });
    for (let round = 0; round < 3; round++)
      await expect(broken.openMaps(largerOf(tiny), signal)).rejects.toThrow(/nowhere/);
    await broken[Symbol.asyncDispose]();
    expect(openFiles()).toBe(before);
    await broken.remove(signal);
  });

  test('grows with all that is in it, and programs use what has grown', async () => {
    const { kernel, maps } = await started();
    maps.frontends.update(key, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    maps.services.values().fill(9, 0, 32);
    maps.affinity.update(new Uint8Array(24), new Uint8Array(16).fill(5));
    const links = linkIds();
    const grown = await kernel.growMaps(largerOf(tiny), signal);
    expect([grown.frontends.shape.maxEntries, grown.affinity === maps.affinity, usesOnly(grown), linkIds()]).toEqual([
      128,
      true,
      true,
      links,
    ]);
    expect(grown.frontends.lookup(key)).toEqual(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    expect([...grown.services.values().subarray(0, 40)]).toEqual(
      Array.from({ length: 40 }, (_, index) => (index < 32 ? 9 : 0)),
    );
    expect([
      (await kernel.growMaps(tiny, signal)) === grown,
      await kernel.findFaults(signal),
      await kernel.attach(signal),
    ]).toEqual([true, [], 0]);
    await kernel[Symbol.asyncDispose]();
    const again = await started();
    expect([again.isNew, again.maps.frontends.lookup(key)?.[0], again.writes]).toEqual([false, 1, 0]);
    await again.kernel.remove(signal);
  });

  test('moves to another cgroup without a moment in neither', async () => {
    const first = await started();
    const other = `${site.cgroup}/other`;
    mkdirSync(other);
    await first.kernel[Symbol.asyncDispose]();
    const second = await started({ cgroup: () => other });
    expect([second.writes, attached(), Object.keys(attached(other)).length]).toEqual([8, {}, 8]);
    await second.kernel.remove(signal);
    rmdirSync(other);
  });
});

function linkIds(): readonly number[] {
  return hooksOf.IPv4.map((hook) => {
    using link = openPinnedLink(linkPath(hook));
    return link?.id ?? 0;
  });
}

function linkPath(hook: CgroupHook): string {
  return join(site.bpffs, 'switchyard/v1-ipv4/links', hook);
}

describe('a change by another process', () => {
  const mapPath = (name: string): string => join(site.bpffs, 'switchyard/v1-ipv4/maps', name);

  test.each<[string, (started: { maps: MapSet }) => void, readonly string[]]>([
    ['a link is detached', () => detach('connect4'), ['link connect4 detached']],
    ['a pin of a link is deleted', () => unlinkSync(linkPath('sendmsg6')), ['link sendmsg6 unpinned']],
    ['a link gets another program', ({ maps }) => exchange('recvmsg4', maps), ['link recvmsg4 has another program']],
    ['a pin of a map is deleted', () => unlinkSync(mapPath('frontends')), ['map frontends unpinned or replaced']],
  ])('%s: it is noticed and put right', async (_, damage, expected) => {
    const one = await started();
    one.maps.frontends.update(key, new Uint8Array(8).fill(3));
    damage(one);
    expect(await one.kernel.findFaults(signal)).toEqual(expected);
    const { maps, isNew } = await one.kernel.openMaps(tiny, signal);
    await one.kernel.attach(signal);
    expect([isNew, maps === one.maps, await one.kernel.findFaults(signal), usesOnly(maps)]).toEqual([
      false,
      true,
      [],
      true,
    ]);
    for (const hook of hooksOf.IPv4) expect([hook, attached()[hook]?.length]).toEqual([hook, 1]);
    await one.kernel.remove(signal);
  });

  test('a set of maps that is not whole is made anew, and programs go over to it', async () => {
    const one = await started();
    unlinkSync(mapPath('services'));
    await one.kernel[Symbol.asyncDispose]();
    const two = await started();
    expect([two.isNew, two.writes, usesOnly(two.maps)]).toEqual([true, 8, true]);
    await two.kernel.remove(signal);
  });

  test('links of another version are taken over, and its maps stay until they are of no use', async () => {
    const old = await started();
    const links = linkIds();
    await old.kernel[Symbol.asyncDispose]();
    const next = site.kernel({ version: 2 });
    expect((await next.openMaps(tiny, signal)).isNew).toBe(true);
    expect([usesOnly(old.maps), pinsOf('IPv4').length]).toEqual([true, 20]);
    expect(await next.attach(signal)).toBe(16);
    expect([pinsOf('IPv4'), pinsOf('IPv4', 2).length]).toEqual([mapNames.toSorted().map((name) => `maps/${name}`), 20]);
    expect([await next.removeOtherVersions(signal), await next.removeOtherVersions(signal)]).toEqual([1, 0]);
    const now = hooksOf.IPv4.map((hook) => {
      using link = openPinnedLink(linkPath(hook).replace('v1', 'v2'));
      return link?.id;
    });
    expect(now).toEqual(links);
    await site.kernel().remove(signal); // any version
    expect([attached(), ownFolders()]).toEqual([{}, []]);
  });
});

function detach(hook: CgroupHook): void {
  using link = openPinnedLink(linkPath(hook));
  link?.detach();
}

function exchange(hook: CgroupHook, maps: MapSet): void {
  using link = openPinnedLink(linkPath(hook));
  using object = loadBpfObject(objectFile('socket'), { maps: new Map(Object.entries(maps)), constants: { family: 6 } });
  const program = object.programs.get(hook);
  if (program !== undefined) link?.update(program);
}

describe('a process that is killed', () => {
  test('at any moment leaves what the next one makes whole', async () => {
    const program = fileURLToPath(new URL('kernel-churn.ts', import.meta.url));
    const outcomes: unknown[] = [];
    for (let round = 0; round < 10; round++) {
      const args = ['--conditions=@switchyard/source', '--no-warnings', program, site.bpffs, site.cgroup];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      await new Promise((resolve) => child.stdout.once('data', resolve));
      await new Promise((resolve) => setTimeout(resolve, 3 + Math.random() * 60));
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
      const one = await started();
      const hooks = Object.values(attached()).map(({ length }) => length);
      outcomes.push([usesOnly(one.maps), hooks.join(), await one.kernel.findFaults(signal), pinsOf('IPv4').length]);
      await one.kernel[Symbol.asyncDispose]();
    }
    expect(outcomes).toEqual(Array.from({ length: 10 }, () => [true, '1,1,1,1,1,1,1,1', [], 20]));
    await site.kernel().remove(signal);
    expect([attached(), ownFolders()]).toEqual([{}, []]);
  });
});

test('everything is taken away also without the rights of BPF, and without a cgroup', async () => {
  const one = await started();
  await one.kernel[Symbol.asyncDispose]();
  const program = fileURLToPath(new URL('kernel-removal.ts', import.meta.url));
  const rights = ['--bounding-set', '-sys_admin,-bpf,-perfmon,-net_admin', '--inh-caps', '-all'];
  const args = [process.execPath, '--conditions=@switchyard/source', '--no-warnings', program, site.bpffs];
  const removed = execFileSync('setpriv', [...rights, ...args], { encoding: 'utf8' });
  expect(JSON.parse(removed)).toEqual([expect.stringContaining('v1-ipv4')]);
  expect([attached(), ownFolders()]).toEqual([{}, []]);
});
