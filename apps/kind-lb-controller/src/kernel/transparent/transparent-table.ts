import { seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner } from '@switchyard/host';
import type { RenderedTransparent } from './render-transparent.ts';

/** The table, of the netdev family. */
const transparentTable = 'switchyard-lb';

/** The table in the kernel. */
export interface FoundTransparent {
  /** Hash of the last loaded text; undefined for a foreign table. */
  readonly digest: string | undefined;
  readonly chains: readonly string[];
  readonly maps: readonly string[];
}

const limit = seconds(20);
/** A chain that nothing leads to; its comment says what was loaded. */
const noteChain = 'loaded';
/** Grows when a map with the same name becomes another one: then nothing of an earlier table can be kept. */
const format = 'v1';

/**
 * Makes the table hold what was rendered, in one transaction: packets meet the old rules or the new ones. A second one deletes what only
 * the old rules used. Connections that maps have learnt stay. Undefined removes the table. Returns whether anything had to be written.
 * `runner` runs in the namespace.
 */
export async function loadTransparent(
  runner: CommandRunner,
  wanted: RenderedTransparent | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const found = await findTransparent(runner, signal);
  if (isLoaded(found, wanted)) return false;
  await load(runner, loadingScript(found, wanted), signal);
  const cleaning = cleaningScript(found, wanted);
  if (cleaning !== '') await load(runner, cleaning, signal);
  return true;
}

/** Pure. Chains are looked for as well: an interface that goes takes the chain at its ingress with it. */
export function isLoaded(found: FoundTransparent | undefined, wanted: RenderedTransparent | undefined): boolean {
  if (found === undefined || wanted === undefined) return found === undefined && wanted === undefined;
  return (
    found.digest === wanted.digest &&
    wanted.chains.every((name) => found.chains.includes(name)) &&
    cleaningScript(found, wanted) === ''
  );
}

/** Pure: the text that turns what was found into what is wanted, and deletes nothing but rules. */
export function loadingScript(found: FoundTransparent | undefined, wanted: RenderedTransparent | undefined): string {
  const name = `netdev ${transparentTable}`;
  if (wanted === undefined) return `delete table ${name}\n`;
  const table = `table ${name} {\n  chain ${noteChain} {\n    return comment "${format} ${wanted.digest}"\n  }\n${wanted.body}}\n`;
  if (found === undefined) return table;
  return `${found.digest === undefined ? 'delete' : 'flush'} table ${name}\n${table}`;
}

/**
 * Pure: the text that deletes maps and chains without a use after `loadingScript`; empty when there are none. In the same transaction the
 * kernel would empty a map at the moment of the change: a packet between an old rule and its map would find nothing and be lost.
 */
export function cleaningScript(found: FoundTransparent | undefined, wanted: RenderedTransparent | undefined): string {
  if (found?.digest === undefined || wanted === undefined) return ''; // there was no table, or it went as a whole
  const unused = {
    map: found.maps.filter((map) => !wanted.maps.includes(map)), // first: they lead to chains
    chain: found.chains.filter((chain) => !wanted.chains.includes(chain)),
  };
  return Object.entries(unused)
    .flatMap(([kind, names]) => names.map((name) => `delete ${kind} netdev ${transparentTable} ${name}\n`))
    .join('');
}

/** Pure: reads `nft --terse list table`. */
export function parseTransparent(listing: string): FoundTransparent {
  const named = (kind: string): string[] =>
    [...listing.matchAll(new RegExp(`^\\t${kind} (\\S+) \\{$`, 'gm'))].map(([, name = '']) => name);
  return {
    digest: new RegExp(`comment "${format} ([0-9a-f]+)"`).exec(listing)?.[1],
    chains: named('chain').filter((name) => name !== noteChain),
    maps: named('map'),
  };
}

/** A table that nft cannot list is replaced as a whole: it says nothing about what would have to go. */
async function findTransparent(runner: CommandRunner, signal: AbortSignal): Promise<FoundTransparent | undefined> {
  const args = ['--terse', 'list', 'table', 'netdev', transparentTable];
  const result = await runner.run('nft', args, { timeout: limit, signal });
  if (result.exitCode === 0) return parseTransparent(result.stdout);
  return result.stderr.includes('No such file or directory') ? undefined : { digest: undefined, chains: [], maps: [] };
}

async function load(runner: CommandRunner, script: string, signal: AbortSignal): Promise<void> {
  const args = ['-f', '-'];
  const result = await runner.run('nft', args, { stdin: script, timeout: limit, signal });
  if (result.exitCode === 0) return;
  const attempt =
    `cannot load the rules of the transparent path into table netdev ${transparentTable} ` +
    '(they need CONFIG_NFT_FWD_NETDEV and CONFIG_NFT_REJECT_NETDEV of the kernel); the rules before stay';
  throw commandFailed(attempt, { file: 'nft', args }, result);
}
