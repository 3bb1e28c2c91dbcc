import { nftablesBackend, type NftablesHost } from '@switchyard/backend-nftables';
import { type Clock, type IpAddress, type IpFamily, ipFamilyOf, noopLogger, systemClock } from '@switchyard/core';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { EbpfBackend } from '../backend.ts';
import type { Wire } from '../kernel/kernel.ts';
import { NodeAddresses } from '../kernel/node-addresses/node-addresses.ts';
import { ruleTableNames, udpSticky } from '../open-backend.ts';
import { OpenMapSet } from '../kernel/open-map-set.ts';
import { Settings } from '../kernel/settings/settings.ts';
import { StaleSockets } from '../kernel/stale-sockets/stale-sockets.ts';
import type { MemoryMachine } from './memory-kernel.ts';

/** A machine without a kernel, as a backend sees it. */
export interface MemoryHost {
  readonly machine: MemoryMachine;
  /** As for `NftablesHost`: the kernel's rules. */
  readonly openTransport: NonNullable<NftablesHost['openTransport']>;
  /** Forwards traffic from outside: programs at uplinks, or rules. */
  readonly northSouth: 'tc' | 'nftables';
  /** Local addresses of the node, of both families. */
  readonly addresses: readonly IpAddress[];
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Overridden functions of the wire; by default it does nothing. */
  readonly wire?: Partial<Wire>;
}

/** Cookie of the host's network namespace on every such machine; sockets of others are pods'. */
export const memoryHostNetns = 1n;

/** The backend over maps in memory, as a started agent opens it. */
export async function openMemoryBackend(
  { machine, openTransport, northSouth, addresses, clock = systemClock, wire = {} }: MemoryHost,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<DataplaneBackend> {
  const logger = noopLogger;
  const maps = new OpenMapSet();
  const users = { ipFamily, maps: maps.get, clock, logger };
  const nft = { openTransport, logger, clock, tableNames: ruleTableNames };
  return new EbpfBackend({
    ipFamily,
    clock,
    logger,
    maps,
    kernel: machine.openKernel(ipFamily),
    wire: { ...memoryWire(northSouth === 'tc'), ...wire },
    rules: await nftablesBackend.open(nft, ipFamily, signal),
    settings: new Settings({ maps: maps.get, hostNetns: () => memoryHostNetns, udpSticky }),
    addresses: new NodeAddresses({ ...users, read: () => addresses.filter((ip) => ipFamilyOf(ip) === ipFamily) }),
    sockets: new StaleSockets({ ...users, namespaces: () => [] }),
  });
}

/** A wire without devices, which only says who carries traffic. */
function memoryWire(isUsed: boolean): Wire {
  return {
    isUsed: async () => isUsed,
    needsRules: async () => false,
    ensure: async () => 0,
    findFaults: async () => [],
    links: () => [],
    follow: async () => undefined,
    remove: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  };
}
