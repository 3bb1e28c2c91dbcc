import { type IpFamily, type Millis, seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner } from '@switchyard/host';
import {
  findIptables,
  iptablesName,
  type IptablesPrograms,
  type IptablesVariant,
  LineSplitter,
} from '@switchyard/netfilter/iptables';
import { parseRefusal } from './refusal.ts';

/** The variant that a node uses, with the reason for the choice. */
export interface DetectedVariant {
  readonly variant: IptablesVariant;
  /** For the log: `chain KUBE-IPTABLES-HINT is in iptables-nft`. */
  readonly reason: string;
}

/** The kubelet makes them in the variant it uses: the first for this purpose (KEP-3178), the second in older releases as well. */
const hints: ReadonlySet<string> = new Set(['KUBE-IPTABLES-HINT', 'KUBE-KUBELET-CANARY']);
/** Reading 100,000 rules of the nft variant takes half a minute. */
const timeout: Millis = seconds(180);

/**
 * Finds out which variant the node uses: that in which the kubelet left its hint chains, else that with more rules, else nft; the
 * only one where one alone is installed. Reads, and makes no tables. Rejects with `HostError` when legacy tables exist that may
 * not be read and nothing else decides.
 */
export async function detectVariant(
  runner: CommandRunner,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<DetectedVariant> {
  const nft = await programsOf(runner, 'nft', ipFamilies, signal);
  const legacy = await programsOf(runner, 'legacy', ipFamilies, signal);
  const [only, none] = nft.length > 0 ? [nft, legacy] : [legacy, nft];
  if (only.length === 0) return { variant: 'nft', reason: 'no iptables is installed' };
  if (none.length === 0) return alone(only);
  // The hints are in mangle too, which is small: all tables of the nft variant may take long.
  const inMangle = await lookAll(runner, nft, ['-t', 'mangle'], signal);
  if (inMangle.hinted !== undefined) return inMangle.hinted;
  // With `-t`, iptables-legacy would make the kernel create the table; without, it reads the existing ones.
  const { hinted, rules } = await lookAll(runner, legacy, [], signal);
  if (hinted !== undefined) return hinted;
  if (rules === 0) return { variant: 'nft', reason: 'no rules in iptables-legacy' };
  const { rules: nftRules } = await lookAll(runner, nft, [], signal);
  const reason = `rules in iptables-legacy: ${rules}, in iptables-nft: ${nftRules}`;
  return { variant: rules > nftRules ? 'legacy' : 'nft', reason };
}

async function programsOf(
  runner: CommandRunner,
  variant: IptablesVariant,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<readonly IptablesPrograms[]> {
  const asked = ipFamilies.map((ipFamily) => findIptables(runner, { ipFamily, variant }, signal));
  return (await Promise.all(asked)).filter((programs) => programs !== undefined);
}

function alone([programs]: readonly IptablesPrograms[]): DetectedVariant {
  const variant = programs?.variant ?? 'nft';
  return { variant, reason: `only the ${variant} variant is installed` };
}

interface Look {
  readonly hinted: DetectedVariant | undefined;
  readonly rules: number;
}

async function lookAll(
  runner: CommandRunner,
  all: readonly IptablesPrograms[],
  args: readonly string[],
  signal: AbortSignal,
): Promise<Look> {
  const found = await Promise.all(all.map((programs) => look(runner, programs, args, signal)));
  return {
    hinted: found.find(({ hinted }) => hinted !== undefined)?.hinted,
    rules: found.reduce((sum, { rules }) => sum + rules, 0),
  };
}

async function look(
  runner: CommandRunner,
  programs: IptablesPrograms,
  args: readonly string[],
  signal: AbortSignal,
): Promise<Look> {
  const file = `${programs.command}-save`;
  let hinted: DetectedVariant | undefined;
  let rules = 0;
  const lines = new LineSplitter((line) => {
    if (line.startsWith('-A ')) rules += 1;
    const chain = line.startsWith(':') ? line.slice(1, line.indexOf(' ')) : '';
    if (!hints.has(chain)) return;
    hinted ??= { variant: programs.variant, reason: `chain ${chain} is in ${iptablesName(programs)}` };
  });
  const result = await runner.run(file, args, { onStdout: (piece) => lines.push(piece), timeout, signal });
  lines.end();
  if (result.exitCode === 0) return { hinted, rules };
  // A kernel without nf_tables, or without IPv6, has no rules.
  if (parseRefusal(result.stderr).kind !== 'permission') return { hinted: undefined, rules: 0 };
  const attempt = `cannot detect which variant of iptables the node uses: reading ${iptablesName(programs)} is not permitted`;
  const advice = 'run with CAP_NET_ADMIN and CAP_NET_RAW, or configure the variant';
  throw commandFailed(attempt, { file, args }, { ...result, stderr: `${result.stderr.trim()}; ${advice}` });
}
