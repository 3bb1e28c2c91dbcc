import { release } from 'node:os';
import type { BackendCapabilities, ProbeResult } from '@switchyard/core/engine';
import { type IpFamily, type Logger, seconds } from '@switchyard/core';
import {
  CommandError,
  type CommandResult,
  type CommandRunner,
  endingOf,
  hostIpFamilies,
  isEndedBySignal,
  runInScratchNamespace,
} from '@switchyard/host';
import {
  findIptables,
  iptablesName,
  type IptablesPlace,
  type IptablesPrograms,
  type IptablesVariant,
  isVersionAtLeast,
} from '@switchyard/netfilter/iptables';
import { detectVariant } from './client/detect-variant.ts';
import { parseRefusal } from './client/refusal.ts';
import { trialTimeout as timeout, tryRules } from './client/create-client.ts';
import type { IptablesHost } from './facts.ts';
import type { RuleText, TableName } from '../render/chains.ts';
import { hostMask, rejectTarget } from '../render/rule-text.ts';

/** legacy: `iptables-restore -w` and `--random-fully`. nft: earlier ones lose or double rules. Tested: 1.8.9. */
export const oldestIptables: Readonly<Record<IptablesVariant, string>> = { legacy: '1.6.2', nft: '1.8.4' };

/** Capabilities of the backend. The minimum time between two applies is kube-proxy's. */
export const capabilities: BackendCapabilities = {
  usesKernelConntrack: true,
  sessionAffinity: true,
  sourceRanges: true,
  minSyncPeriod: seconds(1),
};

export interface ProbedHost extends Pick<IptablesHost, 'runner' | 'variant'> {
  /** Default: the families that this machine has. */
  readonly ipFamilies?: readonly IpFamily[];
  /** Receives a warning when only one family is usable. */
  readonly logger?: Logger;
}

/** A `ProbeResult` with the families for which it holds. */
export type IptablesProbe =
  | (Extract<ProbeResult, { status: 'usable' }> & {
      readonly variant: IptablesVariant;
      /** At least one. */
      readonly ipFamilies: readonly IpFamily[];
      /** Why other families are not usable, in words for the operator. */
      readonly reasons: readonly string[];
    })
  | Extract<ProbeResult, { status: 'unusable' }>;

/** Whether this machine takes the rules, in a network namespace that ends with the command; where none can be made, they are only parsed. */
export async function probeHost(host: ProbedHost, signal: AbortSignal): Promise<IptablesProbe> {
  const { runner, ipFamilies = hostIpFamilies() } = host;
  const variant = host.variant === 'auto' ? (await detectVariant(runner, ipFamilies, signal)).variant : host.variant;
  const usable: IpFamily[] = [];
  const reasons: string[] = [];
  const tried = await Promise.all(ipFamilies.map((ipFamily) => faultsOf({ runner, variant }, ipFamily, signal)));
  for (const [index, ipFamily] of ipFamilies.entries()) {
    const faults = tried[index] ?? [];
    if (faults.length === 0) usable.push(ipFamily);
    reasons.push(...faults);
  }
  if (usable.length === 0) return { status: 'unusable', reasons };
  if (reasons.length > 0) host.logger?.warn('a family of iptables cannot be used', { reasons });
  return { status: 'usable', capabilities, variant, ipFamilies: usable, reasons };
}

async function faultsOf(
  { runner, variant }: { readonly runner: CommandRunner; readonly variant: IptablesVariant },
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const name = iptablesName({ ipFamily, variant });
  const programs = await workingPrograms(runner, { ipFamily, variant }, signal);
  if (programs instanceof CommandError) return [`${programs.message}; install another build of the package iptables`];
  if (programs === undefined) return [`${name} is not installed; install the package iptables`];
  const oldest = oldestIptables[variant];
  if (!isVersionAtLeast(programs.version, oldest)) {
    const version = programs.version === '' ? 'of unknown version' : programs.version;
    return [`${name} ${version} is too old; ${oldest} or newer is needed`];
  }
  const tried = await tryRules(runner, programs, featureText(ruleFeatures(ipFamily)), signal);
  if (tried.exitCode === 0) return [];
  if (isEndedBySignal(tried)) return [`${programs.command}-restore ${endingOf(tried)} when it tried the rules`];
  const { kind, said, advice } = parseRefusal(tried.stderr);
  if (kind === 'permission') return [`${name} may not change the rules: ${advice}`];
  if (kind === 'tables') return [await noTables(runner, programs, tried, signal)];
  return [
    ...(await missingFeatures(runner, programs, ruleFeatures(ipFamily), signal)),
    `${name} refuses the rules: ${said}`,
  ];
}

/** The programs of a place; an error for programs that exist and do not work. */
async function workingPrograms(
  runner: CommandRunner,
  place: IptablesPlace,
  signal: AbortSignal,
): Promise<IptablesPrograms | CommandError | undefined> {
  try {
    return await findIptables(runner, place, signal);
  } catch (error) {
    if (error instanceof CommandError && error.failure === 'failed') return error;
    throw error;
  }
}

/** `iptables-legacy-restore` reports a missing right like a missing table; `iptables-legacy-save` distinguishes them. */
async function noTables(
  runner: CommandRunner,
  programs: IptablesPrograms,
  tried: CommandResult,
  signal: AbortSignal,
): Promise<string> {
  const name = iptablesName(programs);
  const table = /unable to initialize table '(\w+)'/.exec(tried.stderr)?.[1];
  const line = [`${programs.command}-save`, '-t', table ?? 'nat'] as const;
  const asked = table === undefined ? undefined : await runInScratchNamespace(runner, line, { timeout, signal });
  const { kind, said, advice } = parseRefusal(
    asked === undefined || asked.exitCode === 0 ? tried.stderr : asked.stderr,
  );
  if (kind === 'permission') return `${name} may not change the rules: ${advice}`;
  return `${name} cannot reach the kernel's tables: ${said}; ${advice}`;
}

/** Descriptions, for the operator, of the features that this iptables or this kernel lacks. */
export async function missingFeatures(
  runner: CommandRunner,
  programs: IptablesPrograms,
  features: readonly RuleFeature[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const here = `Linux ${release()} with ${iptablesName(programs)} ${programs.version}`;
  const missing: string[] = [];
  for (const feature of features) {
    const result = await tryRules(runner, programs, featureText([feature]), signal);
    if (result.exitCode !== 0) missing.push(`missing: ${feature.name} (${feature.modules}); this is ${here}`);
  }
  return missing;
}

/** A feature of iptables and the kernel that the rules need. */
interface RuleFeature {
  readonly name: string;
  /** The kernel's modules, any of which may be built in. */
  readonly modules: string;
  readonly table: TableName;
  /** A rule that needs this feature and as few others as possible. */
  readonly rule: RuleText;
}

/** All features that the rules need of iptables and the kernel. Each is tried alone to name the missing ones after a refusal. */
export function ruleFeatures(ipFamily: IpFamily): readonly RuleFeature[] {
  const mask = hostMask(ipFamily);
  const destination = ipFamily === 'IPv4' ? '192.0.2.1:80' : '[2001:db8::1]:80';
  return (
    [
      ['the table mangle', 'iptable_mangle or nf_tables', 'mangle', '-j RETURN'],
      ['the table filter', 'iptable_filter or nf_tables', 'filter', '-j RETURN'],
      ['the table nat', 'iptable_nat or nft_chain_nat', 'nat', '-j RETURN'],
      ['comments', 'xt_comment', 'nat', '-m comment --comment "switchyard probe" -j RETURN'],
      ['ports of TCP, UDP and SCTP', 'xt_tcpudp, xt_sctp', 'nat', '-p sctp -m sctp --dport 80 -j RETURN'],
      ['the state of a connection', 'xt_conntrack', 'filter', '-m conntrack --ctstate INVALID -j DROP'],
      ['marks', 'xt_mark', 'nat', '-m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x4000'],
      ['local addresses as a condition', 'xt_addrtype', 'nat', '-m addrtype --dst-type LOCAL -j RETURN'],
      ['choice by chance', 'xt_statistic', 'nat', '-m statistic --mode random --probability 0.50000000000 -j RETURN'],
      [
        'session affinity',
        'xt_recent',
        'nat',
        `-m recent --rcheck --seconds 1 --reap --name SWITCHYARD --mask ${mask} --rsource -j RETURN`,
      ],
      ['translation of destinations', 'xt_nat', 'nat', `-p tcp -m tcp -j DNAT --to-destination ${destination}`],
      ['masquerading to random ports', 'xt_MASQUERADE', 'nat', '-j MASQUERADE --random-fully'],
      ['refusal with an answer', 'ipt_REJECT, ip6t_REJECT', 'filter', rejectTarget(ipFamily)],
    ] as const
  ).map(([name, modules, table, rule]) => ({ name, modules, table, rule }));
}

/** A text for `iptables-restore` that holds rules with these features, in chains that nothing leads to. */
function featureText(features: readonly RuleFeature[]): string {
  const chain = 'SWITCHYARD-PROBE';
  const rules = Object.groupBy(features, ({ table }) => table);
  const texts = Object.entries(rules).map(([table, ofTable]) => {
    const lines = ofTable.map(({ rule }) => `-A ${chain} ${rule}\n`);
    return `*${table}\n:${chain} - [0:0]\n${lines.join('')}COMMIT\n`;
  });
  return texts.join('');
}
