import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type IpFamily, HostError, type Logger, seconds } from '@switchyard/core';
import { type CommandRunner, isProgramMissing } from '@switchyard/host';
import { DeviceReader, detachClsact, NativeMissingError, openNetlinkSocket } from '@switchyard/native';
import { guardTable, isChainOf, removalScript } from './guard-rules.ts';
import { detachPinned, filterPriorities, pinPrefix } from './uplink-programs.ts';

/** Where the wire path may have left something. */
export interface RemovalPlace {
  readonly ipFamily: IpFamily;
  readonly netns?: string;
  readonly runner: CommandRunner;
  readonly logger: Logger;
  readonly pinFolder: string;
}

const timeout = seconds(20);

/**
 * Takes away one family's programs and then its chains, whichever process or build made them. Needs neither maps nor libbpf:
 * taking the pin of a link away detaches it a moment later, unless somebody else holds it. In words; nothing for nothing. Rejects with `HostError`.
 */
export async function removeWire(place: RemovalPlace, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted();
  const removed = [...removePins(place), ...removeFilters(place)];
  return [...removed, ...(await removeChains(place, signal))];
}

function removePins({ pinFolder, ipFamily, logger }: RemovalPlace): readonly string[] {
  if (!existsSync(pinFolder)) return [];
  const pins = readdirSync(pinFolder).filter((name) => name.startsWith(pinPrefix));
  for (const name of pins) {
    const path = join(pinFolder, name);
    try {
      detachPinned(path);
    } catch (error) {
      logger.debug('a link is unpinned without being detached', { path, error });
    }
    rmSync(path);
  }
  return programsText(ipFamily, pins.length);
}

/** Nodes with many pods have many. */
function programsText(ipFamily: IpFamily, count: number): readonly string[] {
  if (count === 0) return [];
  return [`the wire program for ${ipFamily} on ${count} network device${count === 1 ? '' : 's'}`];
}

/** Of kernels without tcx. */
function removeFilters({ ipFamily, netns, logger }: RemovalPlace): readonly string[] {
  const where = { priority: filterPriorities[ipFamily], ...(netns === undefined ? {} : { netns }) };
  try {
    using socket = openNetlinkSocket({ protocol: 'route', ...(netns === undefined ? {} : { netns }) });
    const devices = new DeviceReader(socket).devices();
    const found = devices.filter(({ index }) => detachClsact({ ...where, ifindex: index }));
    return programsText(ipFamily, found.length);
  } catch (error) {
    if (!(error instanceof NativeMissingError)) throw error;
    logger.debug('filters are not looked for: the native addon is not here', { ipFamily });
    return [];
  }
}

async function removeChains({ ipFamily, runner }: RemovalPlace, signal: AbortSignal): Promise<readonly string[]> {
  const chains = await listChains(runner, signal);
  if (chains === undefined) return [];
  const ours = chains.filter((name) => isChainOf(ipFamily, name));
  const isLast = ours.length === chains.length;
  if (ours.length === 0 && !isLast) return [];
  const failure = await change(runner, removalScript(ours, isLast), signal);
  if (failure !== undefined) {
    throw new HostError('ebpf.guard', `cannot remove table inet ${guardTable}: nft says: ${failure}; try it again`);
  }
  if (isLast) return [`nftables table inet ${guardTable}`];
  // The other family may have gone at the same moment, and taken us for the last.
  if ((await listChains(runner, signal))?.length === 0) await change(runner, removalScript([], true), signal);
  return [`chains of ${ipFamily} in nftables table inet ${guardTable}`];
}

/** What nft says when it fails. */
async function change(runner: CommandRunner, stdin: string, signal: AbortSignal): Promise<string | undefined> {
  const { exitCode, stderr } = await runner.run('nft', ['-f', '-'], { stdin, timeout, signal });
  return exitCode === 0 ? undefined : stderr.trim();
}

/** Undefined where there is no such table, or no nft that could have made it. */
async function listChains(runner: CommandRunner, signal: AbortSignal): Promise<readonly string[] | undefined> {
  try {
    const args = ['-j', 'list', 'table', 'inet', guardTable];
    const { exitCode, stdout } = await runner.run('nft', args, { timeout, signal });
    if (exitCode !== 0) return undefined;
    const { nftables } = JSON.parse(stdout) as { nftables: readonly { readonly chain?: { readonly name: string } }[] }; // nft's own format
    return nftables.flatMap(({ chain }) => (chain === undefined ? [] : [chain.name]));
  } catch (error) {
    if (isProgramMissing(error)) return undefined;
    throw error;
  }
}
