import { asError, type Millis, seconds } from '@switchyard/core';
import { commandFailed, type CommandResult, type CommandRunner, isPermissionDenied } from '@switchyard/host';
import { LineSplitter } from './line-splitter.ts';
import { type IptablesSave, saveCollector } from './parse-save.ts';
import { iptablesName, type IptablesPlace, type IptablesVariant } from './place.ts';
import { planRemoval, type RemovalWish, type TableRemoval } from './plan-removal.ts';
import { findIptables } from './programs.ts';

/** Outcome of removing chains from one place. */
export type PlaceRemoval = IptablesPlace &
  (
    | {
        readonly status: 'looked';
        readonly tables: readonly TableRemoval[];
        /** Tables that iptables does not touch, because nft wrote into them what it cannot express. */
        readonly incompatible: readonly string[];
      }
    /** Nothing to do: the program is not installed, or the kernel has no such tables. */
    | { readonly status: 'skipped'; readonly reason: string }
    /** `tables` are those that were done before. */
    | { readonly status: 'failed'; readonly error: Error; readonly tables: readonly TableRemoval[] }
  );

/** iptables needs minutes for tens of thousands of rules. */
const timeout: Millis = seconds(180);
/** For a lock that another iptables holds, in seconds. */
const lockWait = 10;
const attempts = 3;
/** The nft variant takes time with the square of the chains in a script; legacy copies the whole table for each. */
const chainsPerScript: Readonly<Record<IptablesVariant, number>> = { nft: 1000, legacy: Number.POSITIVE_INFINITY };

/** Removes unwanted chains of one place. Returns refusals of the machine as an outcome. Reads again when rules change meanwhile. */
export async function removeChains(
  runner: CommandRunner,
  place: IptablesPlace,
  wish: RemovalWish | ((save: IptablesSave) => RemovalWish),
  signal: AbortSignal,
): Promise<PlaceRemoval> {
  const tables: TableRemoval[] = [];
  try {
    const found = await findIptables(runner, place, signal);
    if (found === undefined) return { ...place, status: 'skipped', reason: `${iptablesName(place)} is not installed` };
    const program = found.command;
    for (let attempt = 1; ; attempt++) {
      const { result, save } = await read(runner, `${program}-save`, signal);
      if (result.exitCode !== 0) {
        if (isAbsent(result))
          return { ...place, status: 'skipped', reason: `the kernel has no ${iptablesName(place)} tables` };
        throw commandFailed(readAttempt(place, result), { file: `${program}-save`, args: [] }, result);
      }
      const { incompatible, plans } = planned(save, wish, chainsPerScript[place.variant]);
      const refused = await writeTables({ runner, program, place }, plans, tables, signal);
      if (refused === undefined) return { ...place, status: 'looked', tables, incompatible };
      if (attempt === attempts) throw refused;
    }
  } catch (error) {
    signal.throwIfAborted();
    return { ...place, status: 'failed', error: asError(error), tables };
  }
}

interface Program {
  readonly runner: CommandRunner;
  readonly program: string;
  readonly place: IptablesPlace;
}

/** Adds to `done`; returns why a table could not be written. */
async function writeTables(
  { runner, program, place }: Program,
  plans: readonly TableRemoval[],
  done: TableRemoval[],
  signal: AbortSignal,
): Promise<Error | undefined> {
  const file = `${program}-restore`;
  const args = ['--noflush', '-w', String(lockWait)];
  for (const plan of plans) {
    if (plan.chains.length === 0 && done.some(({ table }) => table === plan.table)) continue; // told before
    for (const [index, stdin] of plan.scripts.entries()) {
      const result = await runner.run(file, args, { stdin, timeout, signal });
      if (result.exitCode === 0) continue;
      const state = index === 0 ? 'it is as before' : 'nothing leads to those that are left';
      const attempt = `cannot remove chains (${plan.chains.length}) from table ${plan.table} of ${iptablesName(place)}; ${state}`;
      return commandFailed(attempt, { file, args }, result);
    }
    done.push(plan);
  }
  return undefined;
}

interface Planned {
  readonly incompatible: readonly string[];
  readonly plans: readonly TableRemoval[];
}

function planned(save: IptablesSave, wish: RemovalWish | ((save: IptablesSave) => RemovalWish), size: number): Planned {
  const wanted = typeof wish === 'function' ? wish(save) : wish;
  // The birthmark is in mangle, which comes last: after a failure it still identifies the remaining chains.
  const tables = save.tables.toSorted((a, b) => Number(a.name === 'mangle') - Number(b.name === 'mangle'));
  const plans = tables.map((table) => planRemoval(table, wanted, size));
  return {
    incompatible: save.incompatible,
    plans: plans.filter(({ chains, kept }) => chains.length > 0 || kept.size > 0),
  };
}

/** Reads all tables, line by line: there may be a hundred thousand rules. */
async function read(
  runner: CommandRunner,
  file: string,
  signal: AbortSignal,
): Promise<{ readonly result: CommandResult; readonly save: IptablesSave }> {
  const { take, save } = saveCollector();
  const lines = new LineSplitter(take);
  const onStdout = (piece: string): void => lines.push(piece);
  const result = await runner.run(file, [], { onStdout, timeout, signal });
  lines.end();
  return { result, save };
}

function isAbsent(result: CommandResult): boolean {
  const { stderr } = result;
  return (
    !isPermissionDenied(result) &&
    /can't initialize|Table does not exist|No such file or directory|Address family not supported/.test(stderr)
  );
}

/** iptables-legacy asks the kernel over a raw socket. Where there are no tables of it, it does not ask. */
function readAttempt(place: IptablesPlace, result: CommandResult): string {
  const attempt = `cannot read the rules of ${iptablesName(place)}`;
  const isLacking = place.variant === 'legacy' && isPermissionDenied(result);
  return isLacking ? `${attempt}, which needs CAP_NET_RAW besides CAP_NET_ADMIN` : attempt;
}
