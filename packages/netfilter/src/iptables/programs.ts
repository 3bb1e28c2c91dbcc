import { seconds } from '@switchyard/core';
import { commandFailed, type CommandResult, type CommandRunner, isProgramMissing } from '@switchyard/host';
import { iptablesName, type IptablesPlace, plainName } from './place.ts';

/** The programs of one place that are installed. */
export interface IptablesPrograms extends IptablesPlace {
  /** Program that lists and changes rules, such as `iptables-nft` or `iptables`; with `-save` or `-restore`, it reads or writes tables. */
  readonly command: string;
  /** Such as `1.8.9`; empty when the program prints none. */
  readonly version: string;
}

const timeout = seconds(20);

/** Programs by runner and name of the place. A start needs each four times, and to ask costs a process. */
const known = new WeakMap<CommandRunner, Map<string, IptablesPrograms>>();

/** Finds the programs of a place, or plain ones of its variant, and remembers them. Rejects with `CommandError` when one does not work. */
export async function findIptables(
  runner: CommandRunner,
  place: IptablesPlace,
  signal: AbortSignal,
): Promise<IptablesPrograms | undefined> {
  const ofRunner = known.get(runner) ?? new Map<string, IptablesPrograms>();
  known.set(runner, ofRunner);
  const found = ofRunner.get(iptablesName(place)) ?? (await askPrograms(runner, place, signal));
  if (found !== undefined) ofRunner.set(iptablesName(place), found);
  return found;
}

async function askPrograms(
  runner: CommandRunner,
  { ipFamily, variant }: IptablesPlace,
  signal: AbortSignal,
): Promise<IptablesPrograms | undefined> {
  for (const command of [iptablesName({ ipFamily, variant }), plainName(ipFamily)]) {
    const args = ['--version'];
    const answer = await ifInstalled(() => runner.run(command, args, { timeout, signal }));
    if (answer !== undefined && answer.exitCode !== 0) {
      throw commandFailed(`cannot ask ${command} for its version`, { file: command, args }, answer);
    }
    // `iptables v1.8.9 (nf_tables)`; releases before 1.8 say no variant and are legacy.
    if (answer === undefined || answer.stdout.includes('nf_tables') !== (variant === 'nft')) continue;
    return { ipFamily, variant, command, version: /\bv(\d+(?:\.\d+)+)/.exec(answer.stdout)?.[1] ?? '' };
  }
  return undefined;
}

/** Whether a version such as `1.8.9` is this one or a later one. An unknown version (empty) is not. */
export function isVersionAtLeast(version: string, least: string): boolean {
  if (version === '') return false;
  const [numbers, wanted] = [version, least].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const index = wanted.findIndex((part, at) => part !== (numbers[at] ?? 0));
  return index < 0 || (numbers[index] ?? 0) > (wanted[index] ?? 0);
}

async function ifInstalled(run: () => Promise<CommandResult>): Promise<CommandResult | undefined> {
  try {
    return await run();
  } catch (error) {
    if (isProgramMissing(error)) return undefined;
    throw error;
  }
}
