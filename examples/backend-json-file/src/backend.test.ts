import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HostError, ipFamilies, type IpFamily } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import { service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { allScenarios, type BackendHarness, backendContract } from '@switchyard/scenarios';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { jsonFileBackend } from './backend.ts';
import type { Entries } from './render.ts';
import { type EntryStore, folderStore } from './store.ts';
import { jsonFileTraits } from './traits.ts';

const { signal } = new AbortController();

/** Files in memory, which can refuse what names an address. */
const harness: BackendHarness = {
  name: 'json-file',
  dataplane: jsonFileTraits,
  createKernel: () => {
    const files = new Map<IpFamily, Entries>();
    let refused: string | undefined;
    const store: EntryStore = {
      read: async (ipFamily) => files.get(ipFamily) ?? new Map(),
      write: async (ipFamily, entries) => void files.set(ipFamily, entries),
      refusal: (text) =>
        refused !== undefined && text.includes(`"${refused}"`) ? new HostError('x', 'refused') : undefined,
      watch: async () => undefined,
    };
    return {
      open: (ipFamily, stop) => jsonFileBackend(store).open(undefined, ipFamily, stop),
      trace: () => ({ kind: 'pass' }), // no packets here: who reads the file sends them
      injectFailures: () => undefined,
      refuse: (address) => {
        refused = address;
      },
      isEmpty: () => ipFamilies.every((ipFamily) => (files.get(ipFamily)?.size ?? 0) === 0),
    };
  },
};

describe('contract: a backend that writes a file …', () => {
  const scenarios = allScenarios(jsonFileTraits).filter(({ runs }) => runs.kinds.includes('rendering'));

  test.each(backendContract)('$promise', async ({ faults }) => {
    expect(scenarios.length).toBeGreaterThan(0);
    const broken: string[] = [];
    for (const scenario of scenarios) {
      const found = await faults({ harness, scenario }, signal);
      broken.push(...found.map((fault) => `${scenario.id} ${scenario.ipFamily}: ${fault}`));
    }
    expect(broken).toEqual([]);
  });
});

describe('the file', () => {
  let folder: string;
  const file = (): string => join(folder, 'services.IPv4.json');
  const table = tableOf({ services: [service('shop/cart')], slices: [slice('shop/cart')] }, tableOptions());

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'json-file-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  test('is JSON, with a line for each Service port', async () => {
    await using backend = await jsonFileBackend(folderStore(folder)).open(undefined, 'IPv4', signal);
    expect(await backend.apply({ table, scope: { kind: 'full' } }, signal)).toEqual({ status: 'applied', writes: 2 });
    const text = await readFile(file(), 'utf8');
    expect(Object.keys(JSON.parse(text) as object)).toEqual(['settings', ...table.services.keys()]);
    expect(text.split('\n')).toHaveLength(2 + 2 + 1);
    expect(await backend.dump(signal)).toBe(text);
  });

  test('that cannot be written fails the apply, and the next one repairs it', async () => {
    await writeFile(join(folder, 'not-a-folder'), '');
    const store = folderStore(join(folder, 'not-a-folder'));
    await using backend = await jsonFileBackend(store).open(undefined, 'IPv4', signal);
    const outcome = await backend.apply({ table, scope: { kind: 'full' } }, signal);
    expect(outcome).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('ENOTDIR') } });
    await rm(join(folder, 'not-a-folder'));
    expect(await backend.apply({ table, scope: { kind: 'full' } }, signal)).toMatchObject({ status: 'applied' });
  });

  test.each(['{}\n', '{ broken'])('with %j from another process is drift, which an apply heals', async (text) => {
    await using backend = await jsonFileBackend(folderStore(folder)).open(undefined, 'IPv4', signal);
    const stop = new AbortController();
    const seen: Drift[] = [];
    const watching = backend.observers.drift?.((drift) => void seen.push(drift), stop.signal).catch(() => undefined);
    await backend.apply({ table, scope: { kind: 'full' } }, signal);
    await writeFile(file(), text);
    await vi.waitFor(() => expect(seen.at(-1)?.changes).toContain('settings changed'));
    await backend.apply({ table, scope: { kind: 'full', after: 'drift' } }, signal);
    const { length } = seen;
    expect(await backend.apply({ table, scope: { kind: 'full' } }, signal)).toEqual({ status: 'applied', writes: 0 });
    expect(seen).toHaveLength(length);
    stop.abort();
    await watching;
  });
});
