import { type ProbeResult, seconds } from '@switchyard/core';
import { type CommandResult, type CommandRunner, isPermissionDenied, isProgramMissing } from '@switchyard/host';
import { capabilitiesOf } from './backend.ts';
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
 * are loaded for real into a network namespace that ends with the command; where that is not allowed, nft
 * checks them against the kernel without committing.
 */
export async function probeHost({ runner, transport }: ProbedHost, signal: AbortSignal): Promise<ProbeResult> {
  try {
    const reason = (await versionFault(runner, signal)) ?? (await skeletonFault(runner, signal));
    if (reason !== undefined) return { status: 'unusable', reasons: [reason] };
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
  const index = version.findIndex((part, at) => part !== oldestNft[at]);
  if (index < 0 || (version[index] ?? 0) > (oldestNft[index] ?? 0)) return undefined;
  return `nft ${version.join('.')} is too old; ${oldest} or newer is needed`;
}

/** The numbers in `nftables v1.0.6 (Lester Gooch #5)`. */
function parseVersion(text: string): readonly number[] | undefined {
  const match = /\bv(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

async function skeletonFault(runner: CommandRunner, signal: AbortSignal): Promise<string | undefined> {
  const options = { stdin: skeleton('switchyard-probe'), timeout, signal };
  const loaded = await loadInScratchNamespace(runner, options);
  const result = loaded ?? (await runner.run('nft', ['--check', '-f', '-'], options));
  if (result.exitCode === 0) return undefined;
  if (isPermissionDenied(result)) return 'nft may not change the rules: run as root or with CAP_NET_ADMIN';
  const said = result.stderr.trim().split('\n').slice(0, 3).join(' | ');
  return `nft or the kernel refuses the rule set: ${said}`;
}

/** Undefined where no namespace can be made: unshare is missing, or CAP_SYS_ADMIN is. */
async function loadInScratchNamespace(
  runner: CommandRunner,
  options: Parameters<CommandRunner['run']>[2],
): Promise<CommandResult | undefined> {
  try {
    const result = await runner.run('unshare', ['--net', 'nft', '-f', '-'], options);
    return result.exitCode !== 0 && result.stderr.includes('unshare') ? undefined : result;
  } catch (error) {
    if (isProgramMissing(error)) return undefined;
    throw error;
  }
}
