import { HostError, type Millis, seconds } from '@switchyard/core';
import type { CommandResult, CommandRunner } from '@switchyard/host';
import { refusedByNft } from './refused-by-nft.ts';

/** Long enough for 300,000 elements on a busy machine. */
const applyTimeout: Millis = seconds(120);
const listTimeout: Millis = seconds(60);

/** The nft program, as far as this backend uses it. Methods throw `NftError` when nft refuses. */
export interface NftClient {
  /** Runs a script as one transaction; `attempt` says in an error what was tried. An empty script is no run. */
  apply(attempt: string, script: string, signal: AbortSignal): Promise<void>;
  /** Whether there is an `inet` table of this name. Reads no elements, other than `list tables`, which reads them all. */
  hasTable(table: string, signal: AbortSignal): Promise<boolean>;
  /** The elements of a map or set as nft's JSON has them; undefined when there is no such object. */
  elements(object: NftObject, signal: AbortSignal): Promise<readonly unknown[] | undefined>;
  /** Every map and set of a table, with its elements. */
  objects(table: string, signal: AbortSignal): Promise<readonly ObjectListing[]>;
}

/** A map or set in an `inet` table. */
export interface NftObject {
  readonly table: string;
  readonly kind: 'map' | 'set';
  readonly name: string;
}

/** One map or set of a listing. */
export interface ObjectListing {
  readonly kind: 'map' | 'set';
  readonly name: string;
  readonly elements: readonly unknown[];
}

/** A client on top of short-lived nft processes. */
export function createNftClient(runner: CommandRunner): NftClient {
  const list = (args: readonly string[], signal: AbortSignal): Promise<CommandResult> =>
    runner.run('nft', ['-j', 'list', ...args], { timeout: listTimeout, signal });
  return {
    apply: async (attempt, script, signal) => {
      if (script === '') return;
      const result = await runner.run('nft', ['-f', '-'], { stdin: script, timeout: applyTimeout, signal });
      if (result.exitCode !== 0) throw refusedByNft(attempt, result, 'nothing of it took effect');
    },
    hasTable: async (table, signal) => {
      const args = ['-j', '-t', 'list', 'table', 'inet', table];
      const result = await runner.run('nft', args, { timeout: listTimeout, signal });
      if (result.exitCode !== 0) refuseUnlessMissing(`cannot look for table inet ${table}`, result);
      return result.exitCode === 0;
    },
    elements: async ({ table, kind, name }, signal) => {
      const result = await list([kind, 'inet', table, name], signal);
      if (result.exitCode !== 0) return refuseUnlessMissing(`cannot list ${kind} inet ${table} ${name}`, result);
      return parseObjects(result).find((object) => object.name === name)?.elements ?? [];
    },
    objects: async (table, signal) => {
      const result = await list(['table', 'inet', table], signal);
      if (result.exitCode !== 0) throw refusedByNft(`cannot list table inet ${table}`, result, 'will be tried again');
      return parseObjects(result);
    },
  };
}

/** What is not there is an answer; everything else that nft refuses is an error. */
function refuseUnlessMissing(attempt: string, result: CommandResult): undefined {
  const error = refusedByNft(attempt, result, 'will be tried again');
  if (error.refusal !== 'missing') throw error;
}

interface ListedItem {
  readonly kind: string;
  readonly body: Readonly<Record<string, unknown>>;
}

function parseObjects(result: CommandResult): ObjectListing[] {
  return parseListing(result).flatMap(({ kind, body }) => {
    if (kind !== 'map' && kind !== 'set') return [];
    const { name, elem } = body as { readonly name?: unknown; readonly elem?: unknown };
    return [{ kind, name: String(name), elements: Array.isArray(elem) ? (elem as readonly unknown[]) : [] }];
  });
}

/** Takes nft's JSON apart; anything of another shape is an error, not an empty list. */
function parseListing(result: CommandResult): readonly ListedItem[] {
  let listing: unknown;
  try {
    listing = JSON.parse(result.stdout);
  } catch (cause) {
    throw unreadable(result.stdout, { cause });
  }
  const items = (listing as { readonly nftables?: unknown } | null)?.nftables;
  if (!Array.isArray(items)) throw unreadable(result.stdout);
  return items.flatMap((item: unknown) =>
    Object.entries(item as Readonly<Record<string, unknown>>).map(([kind, body]) => ({
      kind,
      body: body as Readonly<Record<string, unknown>>,
    })),
  );
}

function unreadable(text: string, options?: ErrorOptions): HostError {
  const start = JSON.stringify(text.slice(0, 80));
  const message = `cannot read the listing of nft -j: it starts with ${start}; check the nft version with nft --version`;
  return new HostError('nftables.listing', message, options);
}
