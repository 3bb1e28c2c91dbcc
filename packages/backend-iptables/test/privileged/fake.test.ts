import { HostError, ipFamilies, type IpFamily } from '@switchyard/core';
import { seededRandom } from '@switchyard/core/testing';
import { createPacketCounters } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import { FakeIptables } from '../../src/testing/index.ts';
import { randomRestore } from './random-restores.ts';
import { createNamespace, options, signal, type TestNamespace, variant } from './support.ts';

const steps = 120;

test.each(ipFamilies)('the fake takes, refuses and prints what the real iptables does: %s', async (ipFamily) => {
  await using namespace = await createNamespace();
  const fake = new FakeIptables();
  for (const name of countersOf(namespace)) fake.nfacct.add(name);
  const random = seededRandom(`${variant} ${ipFamily}`);
  const ends = new Map<number, number>();
  for (let step = 0; step < steps; step++) {
    const text = randomRestore(ipFamily, random);
    const program = `${nameOf(ipFamily)}-${variant}-restore`;
    const runs = [fake, namespace.runner].map((runner) =>
      runner.run(program, ['--noflush', '-w', '5'], { ...options, stdin: text }),
    );
    const [ours, real] = await Promise.all(runs);
    expect({ text, exitCode: ours?.exitCode, stderr: firstFault(ours?.stderr) }).toEqual({
      text,
      exitCode: real?.exitCode,
      stderr: firstFault(withoutWarnings(real?.stderr)),
    });
    ends.set(real?.exitCode ?? -1, (ends.get(real?.exitCode ?? -1) ?? 0) + 1);
    if (real?.exitCode === 0)
      for (const args of [
        ['-t', 'nat'],
        ['-c', '-t', 'filter'],
        ['-t', 'mangle'],
      ])
        await bothSave(args);
  }
  await bothSave([]);
  // A test that never got anything in, or never anything refused, compares little.
  expect(ends.get(0)).toBeGreaterThan(steps / 5);
  expect(ends.get(1), 'cannot be done').toBeGreaterThan(3);
  expect(ends.get(2), 'words that make no rule').toBeGreaterThan(3);

  async function bothSave(args: readonly string[]): Promise<void> {
    const program = `${nameOf(ipFamily)}-${variant}-save`;
    const [ours, real] = await Promise.all(
      [fake, namespace.runner].map((runner) => runner.run(program, args, options)),
    );
    const clean = (text = ''): string => text.replace(/^(# \w+.*) on .*$/gm, '$1');
    expect(clean(ours?.stdout)).toBe(clean(real?.stdout));
  }
});

test.each(ipFamilies)('the fake lists single chains as the real iptables does: %s', async (ipFamily) => {
  await using namespace = await createNamespace();
  const fake = new FakeIptables();
  const text = `*nat\n:KUBE-SVC-A - [0:0]\n-A PREROUTING -m comment --comment "a -j b" -j KUBE-SVC-A\n-A KUBE-SVC-A -m comment --comment "a -j b"\n-A KUBE-SVC-A\nCOMMIT\n`;
  const name = `${nameOf(ipFamily)}-${variant}`;
  for (const runner of [fake, namespace.runner]) {
    expect(await runner.run(`${name}-restore`, ['--noflush'], { ...options, stdin: text })).toMatchObject({
      exitCode: 0,
    });
  }
  for (const args of [
    ['-S', 'KUBE-SVC-A'],
    ['-S', 'KUBE-SVC-A', '-v'],
    ['-S'],
    ['-v', '-S'],
    ['-S', 'PREROUTING', '-v'],
    ['-S', 'NOBODY'],
  ]) {
    const [ours, real] = await Promise.all(
      [fake, namespace.runner].map((runner) => runner.run(name, ['-t', 'nat', '-w', ...args], options)),
    );
    expect({ args, ...ours }).toEqual({ args, ...real, stderr: withoutWarnings(real?.stderr) });
  }
  signal.throwIfAborted();
});

function nameOf(ipFamily: IpFamily): string {
  return ipFamily === 'IPv4' ? 'iptables' : 'ip6tables';
}

/** Makes a counter that rules may name. A kernel without netfilter accounting has none, and refuses rules with any. */
function countersOf({ path }: TestNamespace): readonly string[] {
  const counters = createPacketCounters({ netns: path });
  try {
    counters.ensure('known');
  } catch (error) {
    if (error instanceof HostError) return [];
    throw error;
  }
  return [...counters.read().keys()];
}

/** Of several faults in the kernel's view, later ones may follow from the first. */
function firstFault(text = ''): string {
  return text.split('\n').slice(0, 2).join('\n');
}

/** The nft programs say so when the kernel has legacy tables as well. */
function withoutWarnings(text = ''): string {
  return text.replace(/^# Warning: .*\n/gm, '');
}
