import type { IpFamily } from '@switchyard/core';
import { birthmarkSet, suffixOf, type TableName, tableNames } from './names.ts';
import type { NftClient } from './nft-cli/nft-client.ts';
import { NftError } from './nft-cli/nft-error.ts';
import { skeleton, skeletonDigest } from './skeleton.ts';

/** Our tables in the kernel. */
export interface FoundTables {
  /** The one with exactly our rules. */
  readonly current: TableName | undefined;
  /** Tables of other builds of this backend, perhaps still forwarding. */
  readonly others: readonly TableName[];
}

/** Looks for our tables by name and birthmark. */
export async function findTables(client: NftClient, signal: AbortSignal): Promise<FoundTables> {
  let current: TableName | undefined;
  const others: TableName[] = [];
  for (const name of tableNames) {
    const marks = await client.elements({ table: name, kind: 'set', name: birthmarkSet }, signal);
    if (current === undefined && marks?.length === 1 && marks[0] === skeletonDigest()) current = name;
    else if (marks !== undefined || (await client.hasTable(name, signal))) others.push(name);
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
export async function ensureTable(client: NftClient, signal: AbortSignal): Promise<EnsuredTable> {
  const found = await findTables(client, signal);
  if (found.current !== undefined) return { table: found.current, others: found.others, isNew: false };
  const free = tableNames.find((name) => !found.others.includes(name));
  const table = free ?? tableNames[1];
  // With both names taken by strangers one of them has to give way at once.
  const script = free === undefined ? `delete table inet ${table}\n${skeleton(table)}` : skeleton(table);
  try {
    await client.apply(`cannot load the rules into table inet ${table}`, script, signal);
  } catch (error) {
    if (!(error instanceof NftError)) throw error;
    const again = await findTables(client, signal);
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
  client: NftClient,
  table: TableName,
  family: IpFamily,
  signal: AbortSignal,
): Promise<void> {
  const suffix = suffixOf(family);
  const objects = await client.objects(table, signal);
  const inUse = objects.filter(({ elements }) => elements.length > 0);
  const isOtherFamilyInUse = inUse.some(({ name }) => /[46]$/.test(name) && !name.endsWith(suffix));
  const script = isOtherFamilyInUse
    ? inUse
        .filter(({ name }) => name.endsWith(suffix))
        .map(({ kind, name }) => `flush ${kind} inet ${table} ${name}\n`)
        .join('')
    : `delete table inet ${table}\n`;
  await client.apply(`cannot take ${family} out of table inet ${table}`, script, signal);
}
