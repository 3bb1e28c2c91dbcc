import type { IpFamily } from '@switchyard/core';
import { suffixOf, type TableName, tableNames } from './names.ts';
import { NftError } from './nft-error.ts';
import { skeleton, skeletonDigest } from './skeleton.ts';
import type { NftTransport } from './transport.ts';

/** Our tables in the kernel. */
export interface FoundTables {
  /** The one with exactly our rules. */
  readonly current: TableName | undefined;
  /** Tables of other builds of this backend, perhaps still forwarding. */
  readonly others: readonly TableName[];
}

/** Looks for our tables by name and birthmark. */
export async function findTables(transport: NftTransport, signal: AbortSignal): Promise<FoundTables> {
  let current: TableName | undefined;
  const others: TableName[] = [];
  for (const name of tableNames) {
    const found = await transport.findTable(name, signal);
    if (found === undefined) continue;
    const { birthmarks } = found;
    const isCurrent = current === undefined && birthmarks?.length === 1 && birthmarks[0] === skeletonDigest();
    if (isCurrent) current = name;
    else others.push(name);
  }
  return { current, others };
}

/** The table to write to. */
export interface EnsuredTable {
  readonly table: TableName;
  readonly others: readonly TableName[];
  /** It was made just now and is empty. */
  readonly isNew: boolean;
}

/**
 * Makes sure that a table with our rules is there, beside tables of other builds, which go on forwarding: an
 * empty table lets every packet pass. Both families may ask at the same time; the second finds the first's.
 */
export async function ensureTable(transport: NftTransport, signal: AbortSignal): Promise<EnsuredTable> {
  const found = await findTables(transport, signal);
  if (found.current !== undefined) return { table: found.current, others: found.others, isNew: false };
  const free = tableNames.find((name) => !found.others.includes(name));
  const table = free ?? tableNames[1];
  // With both names taken by strangers one of them has to give way at once.
  const script = free === undefined ? `delete table inet ${table}\n${skeleton(table)}` : skeleton(table);
  try {
    await transport.loadRules(`cannot load the rules into table inet ${table}`, script, signal);
  } catch (error) {
    if (!(error instanceof NftError)) throw error;
    const again = await findTables(transport, signal);
    if (again.current === undefined) throw error;
    return { table: again.current, others: again.others, isNew: false };
  }
  return { table, others: found.others.filter((name) => name !== table), isNew: true };
}

/**
 * Takes one IP family out of a table of any version, and the table itself when the other family is not in
 * it. One transaction.
 */
export async function removeFamily(
  transport: NftTransport,
  table: TableName,
  family: IpFamily,
  signal: AbortSignal,
): Promise<void> {
  const suffix = suffixOf(family);
  const inUse = (await transport.listObjects(table, signal)).filter(({ isEmpty }) => !isEmpty);
  const isOtherFamilyInUse = inUse.some(({ name }) => /[46]$/.test(name) && !name.endsWith(suffix));
  if (!isOtherFamilyInUse) return transport.deleteTable(table, signal);
  const ours = inUse.filter(({ name }) => name.endsWith(suffix));
  return transport.flushObjects(table, ours, signal);
}
