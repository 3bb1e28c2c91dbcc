import type { DataplaneName, ScenarioFlow } from '@switchyard/scenarios';
import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { SequenceCase } from '../../model/case.ts';
import { LeapingClock } from '../../testing/leaping-clock.ts';
import { MemoryRecorder } from '../../testing/memory-recorder.ts';
import { ScriptedEnvironment } from '../../testing/scripted-environment.ts';
import type { ScriptedProxy } from '../../testing/scripted-proxy.ts';
import { wrongProxies } from '../../testing/wrong-proxies.ts';
import { sequenceCases, sequences } from './index.ts';

const dataplanes: readonly DataplaneName[] = ['nftables', 'iptables', 'ebpf'];
const signal = new AbortController().signal;

interface Trial {
  readonly dataplane: DataplaneName;
  readonly proxy: Partial<ScriptedProxy>;
  readonly command?: string;
  readonly flowObstacle?: (flow: ScenarioFlow) => string | undefined;
  readonly processorShare?: number;
}

async function run(id: string, { dataplane, proxy, command, ...more }: Trial): Promise<MemoryRecorder> {
  const clock = new LeapingClock();
  const found = sequenceCases({ dataplane, cell: 'dual' }, clock).find((one) => one.id === id);
  if (found === undefined) throw new Error(`no sequence is called ${id}`);
  const record = new MemoryRecorder();
  await using environment = new ScriptedEnvironment({
    clock,
    about: { name: 'scripted', dataplane, command },
    proxy,
    ...more,
  });
  await found.run(environment, record, signal);
  return record;
}

const ids = sequenceCases({ dataplane: 'nftables', cell: 'dual' }).map((one: SequenceCase) => one.id);

describe.each(dataplanes)('a proxy that does everything right, as %s', (dataplane) => {
  test.each(ids)('passes %s', async (id) => {
    const { checks, failed } = await run(id, { dataplane, proxy: {} });
    expect(failed).toEqual([]);
    expect(checks.length).toBeGreaterThan(2);
    const names = checks.map((check) => check.id);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});

test.each(ids)('%s records calls that the environment cannot make as skipped, and judges the others', async (id) => {
  const because = 'no way';
  const flowObstacle = ({ from }: ScenarioFlow): string | undefined => (from === 'outside' ? because : undefined);
  const all = await run(id, { dataplane: 'nftables', proxy: {} });
  const { checks, failed, skipped } = await run(id, { dataplane: 'nftables', proxy: {}, flowObstacle });
  expect(failed).toEqual([]);
  expect(skipped.every((step) => step.because === because)).toBe(true);
  const left = checks.filter(({ what }) => what.includes('outside port') || what.includes('outside to '));
  expect(left.map((check) => check.id)).toEqual([]);
  const known = [...checks, ...skipped].map((check) => check.id);
  const isKnown = (id: string): boolean => known.some((one) => id.includes(one));
  expect(all.checks.map((check) => check.id).filter((one) => !isKnown(one))).toEqual([]);
});

test('a sequence says the same twice', async () => {
  for (const id of ids) {
    const [first, second] = [
      await run(id, { dataplane: 'ebpf', proxy: {} }),
      await run(id, { dataplane: 'ebpf', proxy: {} }),
    ];
    const texts = (record: MemoryRecorder) =>
      record.checks.map((check) => `${check.id} ${check.what} ${check.observed}`);
    expect(texts(second)).toEqual(texts(first));
  }
});

describe('a proxy that does something wrong fails', () => {
  test.each(wrongProxies)('$sequence when it $wrong', async ({ sequence, proxy, check }) => {
    for (const dataplane of dataplanes) {
      const id = `sequence/${sequence}/${sequence === 'dual-stack' ? 'dual' : 'ipv6'}`;
      const { failed } = await run(id, { dataplane, proxy });
      expect(failed.filter((one) => check.test(one))).not.toEqual([]);
    }
  });

  test('for every sequence there is one', () => {
    const proven = new Set(wrongProxies.map(({ sequence }) => sequence));
    expect(sequences.map(({ name }) => name).filter((name) => !proven.has(name))).toEqual([]);
  });
});

test('a start may need what kube-proxy was measured with, and half of it more', async () => {
  const { failed } = await run('sequence/agent-down/ipv4', {
    dataplane: 'nftables',
    proxy: { startsWithin: millis(990) },
  });
  expect(failed).toEqual([]);
});

test('a slow start has no verdict where programs wait for processors', async () => {
  const proxy = { startsWithin: millis(1500) };
  const id = 'sequence/agent-down/ipv4';
  const { failed, withoutVerdict } = await run(id, { dataplane: 'nftables', proxy, processorShare: 0.3 });
  expect(failed).toEqual([]);
  expect(withoutVerdict).toMatchObject([
    { because: expect.stringMatching(/^the machine was too busy: a program got 30 % of a processor \(after 1\.5/) },
  ]);
});
