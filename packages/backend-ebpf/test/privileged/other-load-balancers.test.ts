import { execFileSync } from 'node:child_process';
import { mkdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock, MemoryLogger } from '@switchyard/core/testing';
import { type BpfObject, linkCgroup, loadBpfObject } from '@switchyard/native';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tinySizes } from './kernel-sizes.ts';
import { KernelSite } from './kernel-site.ts';

const signal = new AbortController().signal;
let site: KernelSite;
let strangers: BpfObject;

/** Programs that let everything pass, under the names that others give theirs. */
const source = `#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
char LICENSE[] SEC("license") = "Dual BSD/GPL";
SEC("cgroup/connect4") int cil_sock4_connect(struct bpf_sock_addr *context) { return 1; }
SEC("cgroup/connect4") int calico_connect_v4(struct bpf_sock_addr *context) { return 1; }
SEC("cgroup/connect4") int count_connects(struct bpf_sock_addr *context) { return 1; }
`;

beforeAll(() => {
  site = new KernelSite('other');
  const machine = execFileSync('cc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
  const object = join(tmpdir(), `swy-other-${process.pid}.bpf.o`);
  const flags = ['-O2', '-g', '-target', 'bpfel', `-I/usr/include/${machine}`, '-x', 'c', '-c', '-', '-o', object];
  execFileSync('clang', flags, { input: source });
  strangers = loadBpfObject(object);
  execFileSync('rm', [object]);
});
afterAll(() => {
  strangers[Symbol.dispose]();
  site[Symbol.dispose]();
});

function stranger(name: string, cgroup: string): Disposable {
  const program = strangers.programs.get(name);
  if (program === undefined) throw new Error(`no program ${name}`);
  return linkCgroup(program, cgroup, 'connect4');
}

async function start(
  cgroup: string,
  bpffs = site.bpffs,
): Promise<{ readonly error: string; readonly log: MemoryLogger }> {
  const log = new MemoryLogger();
  await using kernel = site.kernel({ cgroup: () => cgroup, bpffs, logger: log });
  try {
    await kernel.openMaps(tinySizes, signal);
    await kernel.attach(signal);
    return { error: '', log };
  } catch (error) {
    return { error: (error as Error).message, log };
  } finally {
    if (bpffs === site.bpffs) await kernel.remove(signal);
  }
}

test.each([
  ['Cilium', 'cil_sock4_connect', 'there'],
  ['Calico', 'calico_connect_v4', 'there'],
  ['Cilium', 'cil_sock4_connect', 'above'],
  ['Cilium', 'cil_sock4_connect', 'below'],
])('%s (%s) at the cgroup or %s it is refused', async (owner, name, where) => {
  const below = `${site.cgroup}/below`;
  mkdirSync(below);
  using _ = stranger(name, where === 'below' ? below : site.cgroup);
  const { error } = await start(where === 'above' ? below : site.cgroup);
  expect(error).toContain(`${owner} (`);
  expect(error).toMatch(/at connect4 of the cgroup .*: disable it there, or run this node with --proxy-mode nftables/);
  rmdirSync(below);
});

test('what does something else is let be', async () => {
  using _ = stranger('count_connects', site.cgroup);
  expect((await start(site.cgroup)).error).toBe('');
});

test('another Switchyard, whose pins are elsewhere, is refused', async () => {
  using other = new KernelSite('other2');
  await using kernel = site.kernel({ bpffs: other.bpffs });
  await kernel.openMaps(tinySizes, signal);
  await kernel.attach(signal);
  const { error } = await start(site.cgroup);
  expect(error).toContain('another Switchyard does load balancing at sockets already');
  await kernel.remove(signal);
});

test('one that starts later is logged once', async () => {
  const log = new MemoryLogger();
  const clock = new ManualClock();
  await using kernel = site.kernel({ logger: log, clock });
  await kernel.openMaps(tinySizes, signal);
  await kernel.attach(signal);
  using _ = stranger('cil_sock4_connect', site.cgroup);
  for (let look = 0; look < 3; look++) {
    expect(await kernel.findFaults(signal)).toEqual([]);
    await clock.advance(10_000);
  }
  const warnings = log.lines.filter(({ level }) => level === 'warn');
  expect(warnings.map(({ fields }) => [fields['hook'], fields['name']])).toEqual([['connect4', 'cil_sock4_conne']]);
  await kernel.remove(signal);
});
