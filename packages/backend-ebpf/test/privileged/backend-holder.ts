import { type DataplaneBackend } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, type IpFamily, noopLogger } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import { LinuxKernel } from '../../src/kernel/programs/linux-kernel.ts';
import { openEbpfBackend } from '../../src/open-backend.ts';

// A process that holds a backend, as an agent does, and does with it what its parent says; it is there to be killed.

/** Arguments of the process. */
export interface HolderOptions {
  readonly ipFamily: IpFamily;
  readonly cgroup: string;
  readonly bpffs: string;
  readonly northSouth: 'tc' | 'nftables';
  /** Path of other socket programs than this build's. */
  readonly object?: string;
}

/** Commands; each is answered with an outcome, or with the removed objects. */
export type HolderCommand =
  | { readonly kind: 'full' | 'next'; readonly services: Parameters<typeof situation>[0] }
  | { readonly kind: 'cleanup' };

const signal = new AbortController().signal;
const [text] = process.argv.slice(2);
const options = JSON.parse(text ?? '{}') as HolderOptions; // the parent's own

async function open(): Promise<DataplaneBackend> {
  const { ipFamily, cgroup, bpffs, northSouth, object } = options;
  const place = { cgroup, bpffs, northSouth, socketLb: 'all', interfaces: [] } as const;
  const host = { ...place, logger: noopLogger };
  const kernel = { ipFamily, cgroup: () => cgroup, bpffs, socketLb: 'all', logger: noopLogger } as const;
  return openEbpfBackend(
    host,
    ipFamily,
    signal,
    object === undefined ? {} : { kernel: new LinuxKernel({ ...kernel, object }) },
  );
}

const backend = await open();
let last: ForwardingTable | undefined;

async function obey(command: HolderCommand): Promise<unknown> {
  if (command.kind === 'cleanup') return backend.cleanup(signal);
  const { ipFamily } = options;
  const table = situation(command.services, { ipFamily });
  const before = last;
  last = table;
  const scope =
    command.kind === 'full'
      ? ({ kind: 'full' } as const)
      : ({ kind: 'delta', delta: diffTables(before, table) } as const);
  const outcome = await backend.apply({ table, scope }, signal);
  return outcome.status === 'failed' ? { status: 'failed', error: outcome.error.message } : outcome;
}

process.on('message', (command: HolderCommand) => {
  void obey(command).then(
    (answer) => process.send?.(answer ?? 'done'),
    (error: unknown) => process.send?.({ status: 'thrown', error: String(error) }),
  );
});
process.send?.('ready');
