import { nftablesBackend } from '@switchyard/backend-nftables';
import { type Clock, type IpFamily, type Millis, seconds, systemClock } from '@switchyard/core';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { netnsCookie } from '@switchyard/native';
import { type BackendParts, EbpfBackend } from './backend.ts';
import type { EbpfHost } from './kernel/host.ts';
import { LinuxKernel } from './kernel/programs/linux-kernel.ts';
import { PinFolders } from './kernel/programs/pin-folders.ts';
import { layoutVersion } from './render/layouts.ts';
import { NodeAddresses } from './kernel/node-addresses/node-addresses.ts';
import { OpenMapSet } from './kernel/open-map-set.ts';
import { cgroupOf } from './kernel/probe.ts';
import { Settings } from './kernel/settings/settings.ts';
import { StaleSockets } from './kernel/stale-sockets/stale-sockets.ts';
import { chooseWire } from './kernel/wire/wire-choice.ts';
import { WirePath } from './kernel/wire/wire-path.ts';

/** Names of the nft table for traffic that programs do not carry. They differ from those of the nftables mode, which may forward too. */
export const ruleTableNames = ['switchyard-ebpf', 'switchyard-ebpf-2'] as const;

/** Time for which an unconnected UDP socket keeps its endpoint. */
export const udpSticky: Millis = seconds(60);

/** Opens one family's backend; changes nothing. `replaced`: other parts than this machine's, for tests. */
export async function openEbpfBackend(
  host: EbpfHost,
  ipFamily: IpFamily,
  signal: AbortSignal,
  replaced: Pick<Partial<BackendParts>, 'kernel' | 'rules'> = {},
): Promise<DataplaneBackend> {
  const { logger, clock = systemClock, bpffs, socketLb, netns } = host;
  const maps = new OpenMapSet();
  let cookie: bigint | undefined;
  const hostNetns = (): bigint => (cookie ??= netnsCookie(netns));
  const openRules = () => nftablesBackend.open({ ...host, tableNames: ruleTableNames }, ipFamily, signal);
  const surroundings = { ipFamily, clock, logger, maps };
  const users = { ipFamily, maps: maps.get, clock, logger, netns };
  return new EbpfBackend({
    ...surroundings,
    rules: replaced.rules ?? (await openRules()),
    kernel: new LinuxKernel({ ipFamily, cgroup: () => cgroupOf(host), bpffs, socketLb, logger }),
    wire: wireOf(host, surroundings),
    settings: new Settings({ maps: maps.get, udpSticky, hostNetns }),
    addresses: new NodeAddresses(users),
    sockets: new StaleSockets(users),
    ...replaced,
  });
}

/** Log line for operators of nodes where no rules carry the traffic of pods. */
const unservedPods =
  'pods whose sockets are not in the cgroup (virtual machines, gVisor) reach Services by devices of their own, where pods are detected by address; behind a bridge of pods use --switchyard-ebpf-north-south=nftables';

interface Surroundings {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly maps: OpenMapSet;
}

function wireOf(host: EbpfHost, { ipFamily, clock, maps }: Surroundings): WirePath {
  const { logger, interfaces, bpffs, netns } = host;
  let isUsed: boolean | undefined;
  const choose = async (signal: AbortSignal): Promise<boolean> => {
    const { kind, why } = await chooseWire(host, signal);
    const by = kind === 'tc' ? 'programs' : 'rules';
    logger.info('traffic from outside is forwarded', { ipFamily, by, northSouth: host.northSouth, why });
    if (kind === 'tc') logger.info(unservedPods, { ipFamily, interfaces });
    return kind === 'tc';
  };
  return new WirePath({
    ipFamily,
    clock,
    maps,
    logger,
    interfaces,
    pinFolder: new PinFolders({ bpffs, ipFamily, version: layoutVersion }).links,
    isUsed: async (signal) => (isUsed ??= await choose(signal)),
    netns,
  });
}
