import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TableWriter } from '@switchyard/backend-nftables';
import type { IpFamily } from '@switchyard/core';
import { deleteTable, listChains } from '@switchyard/netfilter';
import { DeviceReader, detachClsact, NativeMissingError, openNetlinkSocket } from '@switchyard/native';
import { guardTable, isChainOf } from './guard-rules.ts';
import { detachPinned } from '../programs/cgroup-hooks.ts';
import { filterPriorities, pinPrefix, type UplinkOptions } from './uplink-programs.ts';

type RemovalPlace = Omit<UplinkOptions, 'mechanism'>;

/** Removes one family's programs, then its chains, of any process or build, without maps and libbpf. Rejects with `HostError`. */
export async function removeWire(place: RemovalPlace, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted();
  const removed = [...removePins(place), ...removeFilters(place)];
  return [...removed, ...removeChains(place)];
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

/** One description for all devices, because nodes with many pods have many. */
function programsText(ipFamily: IpFamily, count: number): readonly string[] {
  if (count === 0) return [];
  return [`the wire program for ${ipFamily} on ${count} network device${count === 1 ? '' : 's'}`];
}

/** Removes the filters of kernels without tcx. */
function removeFilters({ ipFamily, netns, logger }: RemovalPlace): readonly string[] {
  const where = { priority: filterPriorities[ipFamily], netns };
  try {
    using socket = openNetlinkSocket({ protocol: 'route', netns });
    const devices = new DeviceReader(socket).devices();
    const found = devices.filter(({ index }) => detachClsact({ ...where, ifindex: index }));
    return programsText(ipFamily, found.length);
  } catch (error) {
    if (!(error instanceof NativeMissingError)) throw error;
    logger.debug('filters are not looked for: the native addon is not here', { ipFamily });
    return [];
  }
}

function removeChains({ ipFamily, netns }: RemovalPlace): readonly string[] {
  const place = { family: 'inet', table: guardTable, netns } as const;
  const chains = listChains(place);
  const ours = chains.filter((name) => isChainOf(ipFamily, name));
  const isLast = ours.length === chains.length;
  if (isLast) return deleteTable(place) ? [`nftables table inet ${guardTable}`] : [];
  if (ours.length === 0) return [];
  using writer = new TableWriter({ netns });
  writer.removeChains(`cannot remove chains of ${ipFamily} from table inet ${guardTable}`, guardTable, ours);
  // Both families may be removed at the same moment, and then neither sees itself as the last.
  if (listChains(place).length === 0) deleteTable(place);
  return [`chains of ${ipFamily} in nftables table inet ${guardTable}`];
}
