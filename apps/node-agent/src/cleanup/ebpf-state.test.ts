import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandResult } from '@switchyard/host';
import { expect, test } from 'vitest';
import type { BackendHost } from '../backends.ts';
import { mayEbpfStateBeThere, removeEbpfState } from './ebpf-state.ts';
import { backendHost } from '../testing/backend-host.ts';

const { signal } = new AbortController();
const empty: CommandResult = { exitCode: 0, stdout: '', stderr: '' };
const ours: CommandResult = { ...empty, stdout: 'table inet switchyard\ntable inet switchyard-ebpf\n' };

function host(tables: CommandResult): BackendHost {
  return backendHost({ run: async () => tables });
}

/** On a machine without a bpffs there. */
const remove = (tables: CommandResult) => removeEbpfState({ backendHost: host(tables), ipFamilies: ['IPv4'] }, signal);

test.each([
  ['there are neither tables nor a bpffs', empty],
  ['there are tables of another mode only', { ...empty, stdout: 'table inet switchyard\ntable inet switchyard-2\n' }],
  ['the kernel has no nftables', { exitCode: 1, stdout: '', stderr: 'Error: No such file or directory' }],
])('nothing is left where %s', async (_, tables) => {
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
  const { failures } = await remove({ exitCode: 1, stdout: '', stderr: 'Operation not permitted' });
  expect(failures).toEqual([expect.objectContaining({ message: expect.stringContaining('not permitted') as string })]);
});

test.each([
  ['nothing, where there are neither pins nor tables', [], empty, false],
  ['nothing, where all pins of both families are gone', ['switchyard'], empty, false],
  ['pins', ['switchyard/v1-ipv6'], empty, true],
  ['pins of a version to come', ['switchyard/v9-ipv4'], empty, true],
  ['tables', [], ours, true],
  ['the guard of its programs', [], { ...empty, stdout: 'table inet switchyard-ebpf-guard\n' }, true],
  ['nothing, where only the nftables mode has tables', [], { ...empty, stdout: 'table inet switchyard\n' }, false],
  ['perhaps something, where tables cannot be listed', [], { ...empty, exitCode: 1, stderr: 'not permitted' }, true],
] as const)('a look finds %s', async (_, folders, tables, found) => {
  const bpffs = await mkdtemp(join(tmpdir(), 'switchyard-bpffs-'));
  try {
    for (const folder of folders) await mkdir(join(bpffs, folder), { recursive: true });
    expect(await mayEbpfStateBeThere({ ...host(tables), bpffs }, signal)).toBe(found);
  } finally {
    await rm(bpffs, { recursive: true });
  }
});
