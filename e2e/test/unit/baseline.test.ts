import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { upstreamCall, upstreamTests } from '../scripted/kind-script.ts';
import { type ScriptedMachine, scriptMachine } from '../scripted/scripted-machine.ts';

const cell = 'ebpf-dual-1.37-switchyard';
const cluster = 'swy-e2e-ebpf-dual-1-37-switchyard';
let machine: ScriptedMachine;

// A cell with a baseline is some 90 processes.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

beforeEach(async () => {
  machine = await scriptMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

async function outcome(): Promise<{
  readonly status: string;
  readonly because: readonly string[];
  readonly notes: readonly string[];
}> {
  return JSON.parse(await machine.result(cell, 'outcome.json')) as Awaited<ReturnType<typeof outcome>>;
}

/** Upstream's tests fail one in the given run: with kube-proxy, or with ours. */
async function failWith(proxy: 'baseline' | 'ours' | 'both'): Promise<void> {
  const failing = upstreamCall({ isFailing: true });
  const place = { baseline: '*/upstream-baseline:/results', ours: '*/upstream:/results', both: '*' }[proxy];
  const call = failing.call.replace('--label *', `--label ${place}`);
  machine.programs.expect({ ...failing, call });
}

test('tests run with kube-proxy first, in a cluster of its own, which is gone before ours is made', async () => {
  expect(await machine.run([cell, '--baseline'])).toBe(0);
  const calls = await machine.programs.calls();
  const order = [
    'kind create',
    'upstream-baseline:/results',
    `kind delete cluster --name ${cluster}`,
    'kind create',
    'apply -k',
    '/upstream:/results',
  ];
  let from = 0;
  for (const part of order) {
    const found = calls.findIndex((call, index) => index >= from && call.includes(part));
    expect(found, part).toBeGreaterThanOrEqual(from);
    from = found + 1;
  }
  expect(machine.printed.join('\n')).toContain(`create the cluster ${cluster} with kube-proxy, mode nftables`);
  expect(await machine.result(cell, 'kind.yaml'), 'the second cluster has none').toContain('kubeProxyMode: none');
  const table = await machine.result(cell, 'upstream-table.md');
  expect(table).toContain('|  | kube-proxy nftables | switchyard ebpf |\n|---|---|---|\n| passed | 5 | 5 |');
  expect(await machine.clusters()).toEqual([]);
  expect(await machine.programs.unexpected()).toEqual([]);
});

test('a test that fails with both is a note, and the cell passes', async () => {
  await failWith('both');
  expect(await machine.run([cell, '--baseline'])).toBe(0);
  const { status, notes } = await outcome();
  expect(status).toBe('passed');
  expect(notes.join('\n')).toContain(
    `upstream ${upstreamTests.fails}: expected <bool>: true (fails with kube-proxy too)`,
  );
  expect(await machine.result(cell, 'upstream-table.md')).toContain(
    '| failed | failed | fails with the baseline too |',
  );
});

test('a test that fails with ours alone fails the cell', async () => {
  await failWith('ours');
  expect(await machine.run([cell, '--baseline'])).toBe(1);
  expect(await outcome()).toMatchObject({
    status: 'failed',
    because: [`upstream ${upstreamTests.fails}: expected <bool>: true`],
  });
  expect(await machine.result(cell, 'upstream-table.md')).toContain('| passed | failed | ours alone |');
});

test('a test that fails with kube-proxy alone is a note', async () => {
  await failWith('baseline');
  expect(await machine.run([cell, '--baseline'])).toBe(0);
  expect((await outcome()).notes.join('\n')).toContain(`upstream with kube-proxy ${upstreamTests.fails}: `);
});

test('several cells leave one table of all their proxies', async () => {
  expect(await machine.run(['nftables-dual-1.37-*'])).toBe(0);
  const table = await machine.result('.', 'upstream-table.md');
  expect(table).toContain(
    '|  | switchyard nftables in nftables-dual-1.37-switchyard | switchyard nftables in nftables-dual-1.37-none |',
  );
});
