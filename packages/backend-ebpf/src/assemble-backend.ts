import { type Clock, type IpFamily, type Logger, runTogether } from '@switchyard/core';
import type { DataplaneBackend } from '@switchyard/core/engine';
import { EbpfBackend, type WireState } from './backend.ts';
import { ServiceStatistics } from './kernel/service-statistics.ts';
import { EbpfDrift, type Fault } from './watch/ebpf-drift.ts';
import { type Follower, keepRunning } from './kernel/keep-running.ts';
import type { EbpfKernel } from './kernel/kernel.ts';
import type { NodeAddresses } from './kernel/node-addresses/node-addresses.ts';
import type { OpenMapSet } from './kernel/open-map-set.ts';
import { capabilitiesOf } from './kernel/probe.ts';
import { Programs, type SettingsPart, type WirePart } from './kernel/programs/programs.ts';
import type { StaleSockets } from './kernel/stale-sockets/stale-sockets.ts';

/** What is at a node's uplinks. */
export interface Wire extends WireState, WirePart {
  /** As `WirePath.findFaults`. */
  findFaults(signal: AbortSignal): Promise<readonly string[]>;
  /** New uplinks get the program, until aborted. */
  follow(signal: AbortSignal): Promise<void>;
}

/** The pieces of one family's backend: of a kernel, or for tests in memory. */
export interface BackendPieces {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Shared by all pieces; no maps are open yet. */
  readonly maps: OpenMapSet;
  readonly kernel: EbpfKernel;
  readonly wire: Wire;
  readonly rules: DataplaneBackend;
  readonly settings: SettingsPart;
  readonly addresses: NodeAddresses;
  readonly sockets: StaleSockets;
}

/** The backend out of its pieces. */
export function assembleBackend(pieces: BackendPieces): EbpfBackend {
  const { ipFamily, clock, maps, kernel, wire, rules, settings, addresses, sockets } = pieces;
  const programs = new Programs({
    kernel,
    maps,
    settings: [settings, addresses],
    wire: async (signal) => ((await wire.isUsed(signal)) ? wire : undefined),
    clock,
    noteGone: (gone) => sockets.note(gone),
  });
  const drift = driftOf(pieces, programs);
  const followers: readonly Follower[] = [
    { name: 'addresses of the node', run: (signal) => addresses.follow(signal) },
    { name: 'network devices', run: (signal) => wire.follow(signal) },
    { name: 'sockets of endpoints that are gone', run: (signal) => sockets.run(signal) },
  ];
  return new EbpfBackend({
    ipFamily,
    kernel,
    maps,
    programs,
    wire,
    rules,
    statistics: new ServiceStatistics(clock),
    watching: {
      hold: () => drift.hold(),
      watch: (report, signal) =>
        runTogether([(until) => drift.watch(report, until), (until) => keepRunning(followers, pieces, until)], signal),
    },
    capabilities: capabilitiesOf(rules.capabilities),
    logger: pieces.logger,
  });
}

function driftOf({ clock, kernel, wire, settings, addresses }: BackendPieces, programs: Programs): EbpfDrift {
  const hasApplied = (): boolean => programs.writer !== undefined;
  return new EbpfDrift({
    clock,
    looks: [
      async (signal) => (hasApplied() ? (await kernel.findFaults(signal)).map(faultOf) : []),
      async (signal) => (hasApplied() ? (await wire.findFaults(signal)).map(faultOf) : []),
      () => (hasApplied() ? [...settings.findDamage(), ...addresses.findDamage()].map(contentFault) : []),
    ],
    content: () => programs.writer?.scanDamage() ?? [],
  });
}

function faultOf(text: string): Fault {
  const kind = text.startsWith('map ') ? 'map' : text.includes(' table inet ') ? 'table' : 'program';
  return { kind, text };
}

function contentFault(text: string): Fault {
  return { kind: 'element', text };
}
