import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import { type MapSet, offsetOf, sizeOf, sourceClassIndex } from '@switchyard/backend-ebpf';
import { addressBytes, MemoryMachine, openMemoryBackend, tracePacket } from '@switchyard/backend-ebpf/testing';
import { FakeNft, tracePacket as traceRules } from '@switchyard/backend-nftables/testing';
import { type Flow, type IpAddress, ipFamilyOf, parseIp, type SourceClass, sourceClasses } from '@switchyard/core';
import type { TracedVerdict } from '@switchyard/core/testing';
import { type BackendHarness, type FakeKernel, nodeAddresses, secondNodeAddresses } from '../../src/index.ts';
import { addressPattern } from './address-pattern.ts';
import { observationOf } from './observation-of.ts';

/** Who forwards what comes from outside: programs at the uplinks, or rules of nftables. */
export type NorthSouth = 'tc' | 'nftables';

/** backend-ebpf over maps in memory, with the fake of nftables for what its library writes. */
export function ebpfHarness(northSouth: NorthSouth): BackendHarness {
  return {
    name: northSouth === 'tc' ? 'ebpf' : 'ebpf-nftables',
    dataplane: ebpfTraits,
    createKernel: () => createKernel(northSouth),
  };
}

function createKernel(northSouth: NorthSouth): FakeKernel {
  const machine = new MemoryMachine();
  const nft = new FakeNft();
  const byPrograms = (flow: Flow, returningTo?: IpAddress): TracedVerdict | undefined => {
    const family = ipFamilyOf(flow.destination);
    const maps = machine.isAttached(family) ? machine.mapsOf(family) : undefined;
    return maps && traceMaps({ maps, northSouth }, flow, returningTo);
  };
  return {
    open: (ipFamily, signal) => {
      const { openTransport } = nft;
      return openMemoryBackend({ machine, openTransport, northSouth, addresses }, ipFamily, signal);
    },
    trace: (flow) => observationOf(byPrograms(flow) ?? traceRules(nft, flow)),
    // The fake of nftables knows no rules that remember clients.
    traceReturning: (flow, endpoint) => {
      const verdict = byPrograms(flow, endpoint);
      return verdict && observationOf(verdict);
    },
    injectFailures: (rate, random) => {
      machine.injectFailures(rate, random);
      nft.failures = { rate, random };
    },
    refuse: (address) => {
      machine.refuse(address);
      nft.refusing = addressPattern(address);
    },
    isEmpty: () => machine.isEmpty && nft.ruleset.tables.size === 0,
  };
}

/** Addresses of node1's interfaces. */
const addresses: readonly IpAddress[] = [
  ...Object.values(nodeAddresses).map(({ node1 = '' }) => node1),
  ...Object.values(secondNodeAddresses),
].map((text) => parseIp(text));

interface Programs {
  readonly maps: MapSet;
  readonly northSouth: NorthSouth;
}

/** Outcome of a flow in the programs; undefined if rules decide. */
function traceMaps(
  { maps, northSouth }: Programs,
  flow: Flow,
  returningTo: IpAddress | undefined,
): TracedVerdict | undefined {
  if (flow.protocol === 'SCTP') return undefined;
  const path = flow.isSentHere === true ? 'socket' : 'wire';
  if (path === 'wire' && northSouth === 'nftables') return undefined;
  const from = path === 'socket' ? classOfSocket(maps, flow) : classOnWire(maps, flow.source);
  const options = { path, ...(returningTo === undefined ? {} : { returningTo }) } as const;
  const verdict = tracePacket(maps, { ...flow, from }, options);
  return verdict.kind === 'pass' ? undefined : verdict;
}

/** By network namespace: the node's own, or any other. */
function classOfSocket({ configuration }: MapSet, { from }: Flow): SourceClass {
  const podClass = configuration.values()[offsetOf('configuration', 'pod_class')];
  const told = sourceClasses.find((one) => sourceClassIndex[one] === podClass);
  if (told === undefined) throw new Error(`no class has the number ${podClass}`);
  return from === 'node' ? 'node' : told;
}

/** By source address, as the program at the uplinks does it. */
function classOnWire({ pod_cidrs, node_addresses }: MapSet, source: IpAddress): SourceClass {
  const address = addressBytes(source);
  const key = new Uint8Array(sizeOf('pod_cidr_key'));
  new DataView(key.buffer).setUint32(offsetOf('pod_cidr_key', 'prefix_length'), 128, true);
  key.set(address, offsetOf('pod_cidr_key', 'address'));
  if (pod_cidrs.lookup(key) !== undefined) return 'pod';
  return node_addresses.lookup(address) === undefined ? 'outside' : 'node';
}
