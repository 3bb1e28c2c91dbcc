import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HostError } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type BackendHost, backendOf } from '../backends.ts';
import { mayEbpfStateBeThere, removeEbpfState } from './backend-state.ts';
import { backendHost, memoryTables } from '../testing/backend-host.ts';

const { signal } = new AbortController();
const ours = ['switchyard', 'switchyard-ebpf'];
const unlisted = Symbol('they cannot be listed');
type Tables = readonly string[] | typeof unlisted;

function host(tables: Tables): BackendHost {
  const run = () => Promise.reject(new HostError('test.run', 'no program runs here'));
  if (tables !== unlisted) return backendHost({ run }, memoryTables(tables));
  const listTables = () => Promise.reject(new HostError('test.list', 'netlink failed with EPERM'));
  return backendHost({ run }, { ...memoryTables(), listTables });
}

/** On a machine without a bpffs there. */
const remove = (tables: Tables) =>
  removeEbpfState(backendOf('ebpf'), { host: host(tables), ipFamilies: ['IPv4'] }, signal);

test.each([
  ['there are neither tables nor a bpffs', []],
  ['there are tables of another mode only', ['switchyard', 'switchyard-2']],
] as const)('nothing is left where %s', async (_, tables) => {
  expect(await remove(tables)).toEqual({ removed: [], kept: [], skipped: [], failures: [] });
});

test('tables without the bpffs of the node are a failure that says what to do, and stay as the only sign', async () => {
  const { removed, failures } = await remove(ours);
  expect(removed).toEqual([]);
  expect(failures.map(({ message }) => message)).toEqual([
    expect.stringMatching(/table inet switchyard-ebpf\).* no bpffs is mounted at \/nowhere.*; run --cleanup where/),
  ]);
});

test('tables that cannot be listed are a failure', async () => {
  const { failures } = await remove(unlisted);
  expect(failures).toEqual([expect.objectContaining({ message: expect.stringContaining('EPERM') as string })]);
});

test.each([
  ['nothing, where there are neither pins nor tables', [], [], false],
  ['nothing, where all pins of both families are gone', ['switchyard'], [], false],
  ['pins', ['switchyard/v1-ipv6'], [], true],
  ['pins of a version to come', ['switchyard/v9-ipv4'], [], true],
  ['tables', [], ours, true],
  ['the guard of its programs', [], ['switchyard-ebpf-guard'], true],
  ['nothing, where only the nftables mode has tables', [], ['switchyard'], false],
  ['perhaps something, where tables cannot be listed', [], unlisted, true],
] as const)('a look finds %s', async (_, folders, tables, found) => {
  const bpffs = await mkdtemp(join(tmpdir(), 'switchyard-bpffs-'));
  try {
    for (const folder of folders) await mkdir(join(bpffs, folder), { recursive: true });
    expect(await mayEbpfStateBeThere({ ...host(tables), bpffs }, signal)).toBe(found);
  } finally {
    await rm(bpffs, { recursive: true });
  }
});
