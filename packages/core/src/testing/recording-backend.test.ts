import { describe, expect, test } from 'vitest';
import { diffTables } from '../model/forwarding/build-table.ts';
import type { ForwardingTable } from '../model/forwarding/forwarding-table.ts';
import { service, slice, tableOptions } from './builders.ts';
import { tableOf } from './cluster.ts';
import { FaultyBackend } from './faulty-backend.ts';
import { RecordingBackend } from './recording-backend.ts';
import { hang } from './reconciler-bench.ts';

const { signal } = new AbortController();
const one = tableOf({ services: [service('shop/cart')], slices: [slice('shop/cart', { endpoints: ['10.244.1.1'] })] });
const none = tableOf({});

function delta(from: ForwardingTable, to: ForwardingTable) {
  return { table: to, scope: { kind: 'delta', delta: diffTables(from, to) } } as const;
}

describe('RecordingBackend', () => {
  test('takes a full table, then the delta to the next', async () => {
    const backend = new RecordingBackend();
    expect(await backend.apply({ table: one, scope: { kind: 'full' } }, signal)).toEqual({
      status: 'applied',
      writes: 1,
    });
    expect(await backend.apply(delta(one, none), signal)).toEqual({ status: 'applied', writes: 1 });
    expect(backend.kernel.size).toBe(0);
  });

  test.each([
    ['a delta first', [], delta(none, one), 'before the first full apply'],
    [
      'a delta that lacks something',
      [one],
      { table: none, scope: { kind: 'delta', delta: diffTables(one, one) } },
      'lacks',
    ],
    [
      'a delta that removes what the table has',
      [one],
      { table: one, scope: { kind: 'delta', delta: diffTables(one, none) } },
      'is in the table',
    ],
    [
      'a table of the other family',
      [],
      { table: tableOf({}, tableOptions({ ipFamily: 'IPv6' })), scope: { kind: 'full' } },
      'IPv6',
    ],
  ] as const)('refuses %s', async (...row) => {
    const [, tables, request, message] = row;
    const backend = new RecordingBackend();
    for (const table of tables) await backend.apply({ table, scope: { kind: 'full' } }, signal);
    await expect(backend.apply(request, signal)).rejects.toThrow(message);
  });

  test('refuses a call while another runs, and after disposal', async () => {
    const stop = new AbortController();
    const backend = new RecordingBackend({ during: (_, inner) => hang(inner) });
    const first = backend.apply({ table: one, scope: { kind: 'full' } }, stop.signal);
    await expect(backend.apply({ table: one, scope: { kind: 'full' } }, signal)).rejects.toThrow('while busy');
    stop.abort(new Error('stop'));
    await expect(first).rejects.toThrow('stop');
    await backend[Symbol.asyncDispose]();
    await expect(backend.apply({ table: one, scope: { kind: 'full' } }, signal)).rejects.toThrow('while disposed');
  });

  test('an aborted apply changes nothing', async () => {
    const backend = new RecordingBackend();
    const aborted = AbortSignal.abort(new Error('stop'));
    await expect(backend.apply({ table: one, scope: { kind: 'full' } }, aborted)).rejects.toThrow('stop');
    expect(backend.kernel.size).toBe(0);
  });

  test('dumps what is in the kernel, and nothing after a cleanup', async () => {
    const backend = new RecordingBackend();
    await backend.apply({ table: one, scope: { kind: 'full' } }, signal);
    expect(await backend.dump(signal)).toMatch(/^shop\/cart:\/TCP .*10\.244\.1\.1/);
    await backend.cleanup(signal);
    expect(await backend.dump(signal)).toBe('');
  });
});

describe('FaultyBackend', () => {
  test('spoils as many applies as planned, by chance, and passes the others', async () => {
    const draws = [0.05, 0.5, 0.09, 0.1];
    const backend = new FaultyBackend(new RecordingBackend(), { rate: 0.1, random: () => draws.shift() ?? 1 });
    const outcomes: string[] = [];
    for (let call = 0; call < 4; call++) {
      outcomes.push((await backend.apply({ table: one, scope: { kind: 'full' } }, signal)).status);
    }
    expect(outcomes).toEqual(['failed', 'applied', 'failed', 'applied']);
  });
});
