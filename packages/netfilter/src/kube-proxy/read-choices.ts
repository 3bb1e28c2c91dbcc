import {
  addressAndPort,
  HostError,
  type IpAddress,
  type IpFamily,
  ipToBytes,
  servicePortParts,
  type ServicePortKey,
  type TrafficPolicy,
} from '@switchyard/core';
import { openNetlinkSocket } from '@switchyard/native';
import { endpointChain, serviceChains, suffixOf } from '../iptables/service-chains.ts';
import { RulesReader } from '../nftables/rules-reader.ts';

/** An endpoint of a Service port. */
export interface ChosenPlace {
  readonly address: IpAddress;
  readonly port: number;
}

/** How the kernel's rules of kube-proxy choose the endpoints of one Service port. */
export interface ProxyChoices {
  /** Whether new connections under a policy are led to an endpoint; undefined if there is no rule for that policy. */
  isChosen(policy: TrafficPolicy, place: ChosenPlace): boolean | undefined;
}

/** Reads the rules of a Service port. Throws `HostError`. */
export type ReadChoices = (key: ServicePortKey) => ProxyChoices;

/** Where the rules of a mode of kube-proxy are. */
interface RulesPlace {
  readonly table: string;
  readonly chainOf: (key: ServicePortKey, policy: TrafficPolicy) => string;
  /** Text in a rule that leads to the chain of an endpoint. */
  readonly jumpTo: (key: ServicePortKey, place: ChosenPlace) => string;
}

/**
 * Reads what kube-proxy of this network namespace wrote for one IP family, in its nftables mode or in its iptables mode with iptables-nft. Only
 * the chains of one Service port are read at a time. Throws `HostError` where there are no such rules, and without CAP_NET_ADMIN.
 */
export function openProxyChoices(ipFamily: IpFamily, netns?: string): ReadChoices & Disposable {
  const family = ipFamily === 'IPv4' ? 'ip' : 'ip6';
  const socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const attempt = `cannot read the rules of kube-proxy for ${ipFamily}`;
  const reader = new RulesReader(socket, { attempt, code: 'proxy.rules' }, family);
  try {
    const place = placeIn(reader);
    if (place === undefined) {
      throw new HostError('proxy.rules', `${attempt}: none are in nftables (iptables-legacy and ipvs cannot be read)`);
    }
    const read: ReadChoices = (key) => choicesOf(reader, place, key);
    return Object.assign(read, { [Symbol.dispose]: () => socket[Symbol.dispose]() });
  } catch (error) {
    socket[Symbol.dispose]();
    throw error;
  }
}

function placeIn(reader: RulesReader): RulesPlace | undefined {
  if (reader.flags(nftables.table) !== undefined) return nftables;
  return reader.rules('nat', 'KUBE-SERVICES').length > 0 ? iptables : undefined;
}

const nftablesPrefixes: Readonly<Record<TrafficPolicy, string>> = { Cluster: 'service', Local: 'local' };
const iptablesPrefixes = { Cluster: 'SVC', Local: 'SVL' } as const;

/** An nftables table of kube-proxy: per policy a chain with the addresses, or (older ones, and affinity) with jumps to an endpoint's chain. */
const nftables: RulesPlace = {
  table: 'kube-proxy',
  chainOf: (key, policy) => {
    const { namespace, name, protocol, portName } = servicePortParts(key);
    const text = `${namespace}/${name}/${protocol.toLowerCase()}/${portName}`;
    return `${nftablesPrefixes[policy]}-${suffixOf(text).slice(0, 8)}-${text}`;
  },
  jumpTo: (_, { address, port }) => `__${address.replaceAll(':', '.')}/${port}\0`,
};

const iptables: RulesPlace = {
  table: 'nat',
  chainOf: (key, policy) => serviceChains(key, servicePortParts(key).protocol)[iptablesPrefixes[policy]],
  jumpTo: (key, { address, port }) => endpointChain(key, servicePortParts(key).protocol, addressAndPort(address, port)),
};

function choicesOf(reader: RulesReader, place: RulesPlace, key: ServicePortKey): ProxyChoices {
  const read = (policy: TrafficPolicy): Buffer | undefined =>
    chainBytes(reader, place.table, place.chainOf(key, policy));
  const bytes = ofOneGeneration(reader, () => ({ Cluster: read('Cluster'), Local: read('Local') }));
  return {
    isChosen: (policy, endpoint) => {
      const rules = bytes[policy];
      if (rules === undefined) return undefined;
      // An address stands in a map of addresses and ports, a chain in a verdict. A wrong match by chance only makes a caller wait.
      return (
        rules.includes(Buffer.from(ipToBytes(endpoint.address))) ||
        rules.includes(place.jumpTo(key, endpoint), 'latin1')
      );
    },
  };
}

const maxReads = 100;

/** A transaction between two reads would leave out what it moved. */
function ofOneGeneration<T>(reader: RulesReader, read: () => T): T {
  for (let reads = 0; reads < maxReads; reads++) {
    const before = reader.generation();
    const found = read();
    if (reader.generation() === before) return found;
  }
  throw new HostError('proxy.rules', `the rules of kube-proxy changed during each of ${maxReads} reads; try again`);
}

/** Expressions of a chain's rules and the data of the maps in them; undefined without a rule. */
function chainBytes(reader: RulesReader, table: string, chain: string): Buffer | undefined {
  const rules = Buffer.concat(reader.rules(table, chain).map(({ expressions }) => expressions));
  if (rules.length === 0) return undefined;
  const maps = new Set(rules.toString('latin1').match(/__(?:map|set)\d+/g));
  const elements = [...maps].flatMap((map) => reader.elements(table, map) ?? []);
  return Buffer.concat([rules, ...elements.map(({ data }) => data)]);
}
