import { HostError, type Millis, seconds } from '@switchyard/core';
import { commandFailed, type CommandResult, type CommandRunner, runInScratchNamespace } from '@switchyard/host';
import {
  findIptables,
  iptablesName,
  type IptablesPlace,
  type IptablesPrograms,
  isVersionAtLeast,
  LineSplitter,
  saveLineReader,
  type SaveReader,
} from '@switchyard/netfilter/iptables';
import type { TableName } from '../../render/chains.ts';
import type { CountedRule, IptablesClient, RestoreResult } from './iptables-client.ts';
import { parseRefusal } from './refusal.ts';

export interface IptablesClientOptions extends IptablesPrograms {
  readonly runner: CommandRunner;
}

/** On a busy machine the nft variant needs minutes for tens of thousands of chains. */
const timeout: Millis = seconds(180);
/** For a lock that another iptables holds, in seconds; as kube-proxy. */
const lockWait = 5;
/** How often programs before 1.8.8 look at the lock, in microseconds; later ones are woken and warn of the flag. */
const lockInterval = 100_000;

/** A client of programs that were found. Holds nothing: each call is a process. */
export function createIptablesClient(options: IptablesClientOptions): IptablesClient {
  const { ipFamily, variant, version } = options;
  return {
    ipFamily,
    variant,
    version,
    read: (table, reader, signal) => read(options, table, reader, signal),
    list: (table, chain, signal) => list(options, table, chain, signal),
    restore: (text, signal) => restore(options, text, signal),
  };
}

/** The programs of a place. Rejects with `HostError` when they are not installed. */
export async function findPrograms(
  { runner, ...place }: IptablesPlace & Pick<IptablesClientOptions, 'runner'>,
  signal: AbortSignal,
): Promise<IptablesPrograms> {
  const programs = await findIptables(runner, place, signal);
  if (programs !== undefined) return programs;
  throw new HostError(
    'iptables.missing',
    `cannot write rules with ${iptablesName(place)}: it is not installed; install the package iptables`,
  );
}

async function read(
  options: IptablesClientOptions,
  table: TableName,
  reader: SaveReader,
  signal: AbortSignal,
): Promise<void> {
  const file = `${options.command}-save`;
  const args = ['-t', table];
  const { take, outcome } = saveLineReader(reader);
  const lines = new LineSplitter(take);
  const onStdout = (piece: string): void => lines.push(piece);
  const result = await options.runner.run(file, args, { onStdout, timeout, signal });
  lines.end();
  if (outcome.incompatible.length > 0) throw new UnreadableTableError(options, table);
  const attempt = `cannot read table ${table} of ${iptablesName(options)}`;
  if (result.exitCode !== 0) throw failure(attempt, { file, args }, result);
  if (!outcome.isComplete) throw new HostError('iptables.cut', `${attempt}: ${file} ended before the table did`);
}

async function list(
  options: IptablesClientOptions,
  table: TableName,
  chain: string,
  signal: AbortSignal,
): Promise<readonly CountedRule[] | undefined> {
  const { command: file, runner } = options;
  const args = [...waitArguments(options), '-t', table, '-S', chain, '-v'];
  const result = await runner.run(file, args, { timeout, signal });
  if (result.exitCode === 0) return parseListing(result.stdout, chain);
  // The nft variant of 1.8.9 calls a chain incompatible that does not exist.
  if (/No chain\/target\/match by that name|is incompatible, use 'nft' tool/.test(result.stderr)) return undefined;
  throw failure(`cannot list chain ${chain} of table ${table} of ${iptablesName(options)}`, { file, args }, result);
}

async function restore(
  options: IptablesClientOptions,
  text: string | Iterable<string>,
  signal: AbortSignal,
): Promise<RestoreResult> {
  const file = `${options.command}-restore`;
  const args = ['--noflush', ...waitArguments(options)];
  const result = await options.runner.run(file, args, { stdin: text, timeout, signal });
  if (result.exitCode === 0) return { status: 'done' };
  const { kind, line } = parseRefusal(result.stderr);
  const error = failure(`cannot write rules with ${iptablesName(options)}`, { file, args }, result);
  if (kind === 'permission' || kind === 'tables') throw error;
  return { status: 'refused', line, isTransient: kind === 'locked' || kind === 'changed', error };
}

/** iptables 1.6.2 is the first whose `iptables-restore` waits. */
function waitArguments({ variant, version }: IptablesPrograms): readonly string[] {
  const isWoken = variant === 'nft' || isVersionAtLeast(version, '1.8.8');
  return ['-w', String(lockWait), ...(isWoken ? [] : ['-W', String(lockInterval)])];
}

function failure(
  attempt: string,
  command: { readonly file: string; readonly args: readonly string[] },
  result: CommandResult,
): Error {
  const { said, advice } = parseRefusal(result.stderr);
  return commandFailed(attempt, command, { ...result, stderr: advice === '' ? said : `${said}; ${advice}` });
}

/** iptables-nft cannot read a table, because nft wrote into it what iptables cannot express. */
export class UnreadableTableError extends HostError {
  override readonly name = 'UnreadableTableError';
  readonly table: TableName;

  constructor(place: IptablesPlace, table: TableName) {
    const family = place.ipFamily === 'IPv4' ? 'ip' : 'ip6';
    super(
      'iptables.incompatible',
      `cannot read table ${table} of ${iptablesName(place)}: nft wrote into it what iptables cannot express; look at it with ` +
        `'nft list table ${family} ${table}', and remove what does not belong there`,
    );
    this.table = table;
  }
}

export const trialTimeout: Millis = seconds(30);

/** Loads rules into a network namespace that ends with the command; where none can be made, `--test` parses them. */
export async function tryRules(
  runner: CommandRunner,
  { command }: IptablesPrograms,
  stdin: string,
  signal: AbortSignal,
): Promise<CommandResult> {
  const options = { stdin, timeout: trialTimeout, signal };
  const file = `${command}-restore`;
  const args = ['--noflush', '-w', '5'];
  return (
    (await runInScratchNamespace(runner, [file, ...args], options)) ??
    (await runner.run(file, [...args, '--test'], options))
  );
}

/** The rules in the output of `-S CHAIN -v`, in their order. */
export function parseListing(text: string, chain: string): readonly CountedRule[] {
  const head = `-A ${chain}`;
  return text.split('\n').flatMap((printed) => {
    const line = printed.trimEnd(); // 1.8.7 leaves a blank where a rule has no target
    if (line !== head && !line.startsWith(`${head} `)) return [];
    return [parseCounted(line.slice(head.length + 1))];
  });
}

/** Counters stand before the target, or at the end without one. A quoted comment may hold the same. */
function parseCounted(text: string): CountedRule {
  for (const found of text.matchAll(/"(?:[^"\\]|\\.)*"|(?:^|(\s))-c (\d+) (\d+)(?=$| -[jg] )/g)) {
    const [all, before = '', packets, bytes] = found;
    if (packets === undefined) continue;
    const after = text.slice(found.index + all.length);
    const rule = before === '' ? after.slice(1) : text.slice(0, found.index) + after;
    return { rule, packets: Number(packets), bytes: Number(bytes) };
  }
  return { rule: text, packets: 0, bytes: 0 };
}
