import type { IpFamily } from '@switchyard/core';
import { elementObjects, suffixOf, type TableName, type TableNames } from '../render/names.ts';
import { NftError } from './nft-error.ts';
import { skeleton, skeletonDigest } from '../render/skeleton.ts';
import type { NftTransport } from './transport.ts';

export interface TableLookup {
  readonly transport: NftTransport;
  readonly names: TableNames;
}

export interface FoundTables {
  /** The one with exactly our rules. */
  readonly current: TableName | undefined;
  /** Tables of other builds of this backend, perhaps still forwarding. */
  readonly others: readonly TableName[];
}

/** Looks for our tables by name and birthmark, and whether the rules are still what the birthmark says. */
export async function findTables(
  { transport, names }: TableLookup,
  signal: AbortSignal,
  areRight: (table: string) => boolean = () => true,
): Promise<FoundTables> {
  let current: TableName | undefined;
  const others: TableName[] = [];
  for (const name of names) {
    const found = await transport.findTable(name, signal);
    if (found === undefined) continue;
    const { birthmarks } = found;
    const isOurs = birthmarks?.length === 1 && birthmarks[0] === skeletonDigest();
    if (current === undefined && isOurs && areRight(name)) current = name;
    else others.push(name);
  }
  return { current, others };
}

export interface EnsuredTable {
  readonly table: TableName;
  readonly others: readonly TableName[];
  /** Whether this call made it; then it is empty. */
  readonly isNew: boolean;
}

/** Makes sure that a table with our rules exists, beside others that still forward. Both families may call this at the same time. */
export function ensureTable(lookup: TableLookup, signal: AbortSignal): Promise<EnsuredTable> {
  return lookup.transport.exclusively(() => ensureAlone(lookup, signal));
}

async function ensureAlone(lookup: TableLookup, signal: AbortSignal): Promise<EnsuredTable> {
  const { transport, names } = lookup;
  const { keeper } = transport;
  const found = await findTables(lookup, signal, (table) => keeper?.areRight(table) ?? true);
  if (found.current !== undefined) return { table: found.current, others: found.others, isNew: false };
  const free = names.find((name) => !found.others.includes(name));
  const table = free ?? names[1];
  // With both names taken by foreign tables, one of them is deleted at once. Not in one transaction with the load:
  // drift detection would take that for a foreign change.
  if (free === undefined) await transport.deleteTable(table, signal);
  try {
    await transport.loadRules(`cannot load the rules into table inet ${table}`, skeleton(table), signal);
  } catch (error) {
    if (!(error instanceof NftError)) throw error;
    const again = await findTables(lookup, signal);
    if (again.current === undefined) throw error;
    return { table: again.current, others: again.others, isNew: false };
  }
  keeper?.mark(table);
  return { table, others: found.others.filter((name) => name !== table), isNew: true };
}

/** Removes a family from a table of any version; the table too if the other family is not in it. */
export function removeFamily(
  transport: NftTransport,
  table: TableName,
  family: IpFamily,
  signal: AbortSignal,
): Promise<string | undefined> {
  return transport.exclusively(async () => {
    try {
      return await removeAlone(transport, { table, family }, signal);
    } catch (error) {
      if (!(error instanceof NftError) || error.refusal !== 'missing') throw error;
      if ((await transport.findTable(table, signal)) !== undefined) throw error;
      return undefined;
    }
  });
}

/** Objects that a packet reads after it was found in another one. */
const readLater: ReadonlySet<string> = new Set(elementObjects.slice(0, elementObjects.indexOf('frontends')));

/** In two transactions: a packet that the table's frontends have taken finds all that it needs. */
async function removeAlone(
  transport: NftTransport,
  { table, family }: { readonly table: TableName; readonly family: IpFamily },
  signal: AbortSignal,
): Promise<string | undefined> {
  const suffix = suffixOf(family);
  const inUse = (await transport.listObjects(table, signal)).filter(({ isEmpty }) => !isEmpty);
  const isOtherFamilyInUse = inUse.some(({ name }) => /[46]$/.test(name) && !name.endsWith(suffix));
  const ours = inUse.filter(({ name }) => name.endsWith(suffix));
  const { first = [], later = [] } = Object.groupBy(ours, ({ name }) =>
    readLater.has(name.slice(0, -1)) ? 'later' : 'first',
  );
  if (first.length > 0) await transport.flushObjects(table, first, signal);
  if (!isOtherFamilyInUse) {
    await transport.deleteTable(table, signal);
    return `nftables table inet ${table}`;
  }
  if (later.length > 0) await transport.flushObjects(table, later, signal);
  return ours.length === 0 ? undefined : `everything of ${family} in nftables table inet ${table}`;
}
