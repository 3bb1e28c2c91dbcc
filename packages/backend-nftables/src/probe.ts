import { type ProbeResult, seconds } from '@switchyard/core';
import {
  type CommandResult,
  type CommandRunner,
  isPermissionDenied,
  isProgramMissing,
  isVersionAtLeast,
  runInScratchNamespace,
} from '@switchyard/host';
import { capabilitiesOf } from './backend.ts';
import { type RuleFeature, ruleFeatures } from './rule-features.ts';
import { skeleton } from './skeleton.ts';
import type { NftTransport } from './transport.ts';

/** The oldest nft that is meant to load the rules. Tested: 1.0.6 (Debian 12). */
export const oldestNft: readonly [number, number, number] = [1, 0, 1];

const timeout = seconds(20);

/** What is asked. */
export interface ProbedHost {
  readonly runner: CommandRunner;
  readonly transport: NftTransport['kind'];
}

/**
 * Whether this machine can run the rule set: nft is there and new enough, and the kernel takes the rules. They
 * are loaded for real into a network namespace that ends with the command; where none can be made, nft
 * checks them against the kernel without committing. When they are refused, what they need is tried piece by piece.
 */
export async function probeHost({ runner, transport }: ProbedHost, signal: AbortSignal): Promise<ProbeResult> {
  try {
    const tooOld = await versionFault(runner, signal);
    const reasons = tooOld === undefined ? await skeletonFaults(runner, signal) : [tooOld];
    if (reasons.length > 0) return { status: 'unusable', reasons };
    return { status: 'usable', capabilities: capabilitiesOf(transport) };
  } catch (error) {
    signal.throwIfAborted();
    if (isProgramMissing(error)) {
      return { status: 'unusable', reasons: ['the program nft is not installed; install the package nftables'] };
    }
    throw error;
  }
}

async function versionFault(runner: CommandRunner, signal: AbortSignal): Promise<string | undefined> {
  const result = await runner.run('nft', ['--version'], { timeout, signal });
  const version = parseVersion(result.stdout);
  const oldest = oldestNft.join('.');
  if (version === undefined) {
    return `cannot tell the version of nft from ${JSON.stringify(result.stdout.trim())}; ${oldest} or newer is needed`;
  }
  if (isVersionAtLeast(version.join('.'), oldest)) return undefined;
  return `nft ${version.join('.')} is too old; ${oldest} or newer is needed`;
}

/** The numbers in `nftables v1.0.6 (Lester Gooch #5)`. */
function parseVersion(text: string): readonly number[] | undefined {
  const match = /\bv(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

async function skeletonFaults(runner: CommandRunner, signal: AbortSignal): Promise<readonly string[]> {
  const result = await tryRules(runner, skeleton(probeTable), signal);
  if (result.exitCode === 0) return [];
  if (isPermissionDenied(result)) return ['nft may not change the rules: run as root or with CAP_NET_ADMIN'];
  const said = result.stderr.trim().split('\n').slice(0, 3).join(' | ');
  const missing = await missingFeatures(runner, ruleFeatures, signal);
  return [...missing, `nft or the kernel refuses the rule set: ${said}`];
}

/** Which features this nft and this kernel do not have, in words for the operator. */
export async function missingFeatures(
  runner: CommandRunner,
  features: readonly RuleFeature[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const missing: string[] = [];
  const kernel = await runner.run('uname', ['-r'], { timeout, signal });
  const nft = await runner.run('nft', ['--version'], { timeout, signal });
  const here = `Linux ${kernel.stdout.trim()} with nft ${parseVersion(nft.stdout)?.join('.') ?? '?'}`;
  for (const { name, since, rules } of features) {
    const result = await tryRules(runner, `table inet ${probeTable} {\n${rules}\n}\n`, signal);
    if (result.exitCode !== 0) missing.push(`missing: ${name}; needs ${since}, this is ${here}`);
  }
  return missing;
}

const probeTable = 'switchyard-probe';

/** Loads rules where they hurt nobody. */
async function tryRules(runner: CommandRunner, stdin: string, signal: AbortSignal): Promise<CommandResult> {
  const options = { stdin, timeout, signal };
  return (
    (await runInScratchNamespace(runner, ['nft', '-f', '-'], options)) ??
    (await runner.run('nft', ['--check', '-f', '-'], options))
  );
}
