import { createHash } from 'node:crypto';
import { type IpFamily, ipFamilies, ipFamilyOf, ipToBytes, type Protocol } from '@switchyard/core';
import { nodeNumbers } from './buckets.ts';
import { type PacketPlaces, packetPlaces } from './packet-places.ts';
import { renderPort } from './render-port.ts';
import { classId, fillMap, nameOf, type Rendering } from './rendering.ts';
import type { TransparentPort } from './transparent-port.ts';

/** Chains and maps as nft text, and by name: loading deletes all others. Maps keep what they hold. */
export interface RenderedTransparent {
  /** Body of the table. */
  readonly body: string;
  readonly chains: readonly string[];
  /** Those with elements in `body`, and those that rules fill with connections and what belongs to them. */
  readonly maps: readonly string[];
  /** Of `body`. */
  readonly digest: string;
}

const maxFragments = 4096;
const fragmentSeconds = 30;
const protocolNumbers: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };

/**
 * The rules of the transparent path: packets to the ports go to a node's link address (`fwd`) as they came but for their TTL,
 * before this host's own stack sees them. No connection tracking, routing or forwarding setting takes part.
 *
 * A connection is a client's address and port (in `meta mark`) at one of the ports. `flows-…` remembers its node, by number, in
 * `meta priority`; a new connection gets the node of its bucket. A new node changes no remembered connection and few buckets.
 */
export function renderTransparent(ports: readonly TransparentPort[], interfaceName: string): RenderedTransparent {
  const families = ipFamilies.flatMap((ipFamily): readonly FamilyPorts[] => {
    const own = ports.filter(({ address }) => ipFamilyOf(address) === ipFamily);
    return own.length === 0 ? [] : [{ ipFamily, places: packetPlaces[ipFamily], ports: own, interfaceName }];
  });
  const numbers = nodeNumbers(ports.flatMap(({ present }) => present));
  const to: Rendering = { numbers, chains: [], filled: new Map(), learnt: new Map() };
  for (const family of families) renderSending(family, to);
  for (const port of ports) renderPort(port, to);
  for (const family of families) renderErrors(family, to);
  renderIngress(families, interfaceName, to);
  const body = textOf(to);
  return {
    body,
    chains: to.chains.map(({ name }) => name),
    maps: [...to.filled.keys(), ...to.learnt.keys()],
    digest: createHash('sha256').update(body).digest('hex').slice(0, 16),
  };
}

/** Parts that are the same for all ports of one family. */
interface FamilyPorts {
  readonly ipFamily: IpFamily;
  readonly places: PacketPlaces;
  readonly ports: readonly TransparentPort[];
  readonly interfaceName: string;
}

/** `send4`: to the node whose number is in `meta priority`; the rest of a packet in fragments follows its first one. */
function renderSending({ ipFamily, places, ports, interfaceName }: FamilyPorts, to: Rendering): void {
  const { suffix, ip, fragmentKey } = places;
  const nodes = new Set(ports.flatMap(({ present }) => present.filter((node) => ipFamilyOf(node) === ipFamily)));
  const elements = [...nodes].toSorted().map((node) => `${classId(to, node)} : ${node}`);
  const map = fillMap(to, { name: `nodes${suffix}`, type: `meta priority : ${ip} daddr`, elements });
  const fragments = `typeof ${fragmentKey} : meta priority; size ${maxFragments}; flags dynamic,timeout;`;
  to.learnt.set(`fragments${suffix}`, fragments);
  const forget = `delete @fragments${suffix} { ${fragmentKey} : meta priority }`;
  const note = `update @fragments${suffix} { ${fragmentKey} timeout ${fragmentSeconds}s : meta priority }`;
  const send = `fwd ${ip} to meta priority map @${map} device "${interfaceName}"`;
  const noted = [forget, note].map((rule) => `${places.isFirstFragment} ${rule}`);
  to.chains.push({ name: `send${suffix}`, rules: [...noted, send, 'drop'] });
}

/** Errors about a connection, such as "packet too big", go where the connection goes: the node's proxy translates them. */
function renderErrors({ places: { suffix, quoted }, ports }: FamilyPorts, to: Rendering): void {
  const elements = ports.map((port) => {
    const address = Buffer.from(ipToBytes(port.address)).toString('hex');
    return `${protocolNumbers[port.protocol]} . 0x${address} . ${port.port} : goto about-${nameOf(port)}`;
  });
  const name = `errors${suffix}`;
  const map = fillMap(to, { name, type: `${quoted.place} : verdict`, elements });
  to.chains.push({ name, rules: [`${quoted.guard}${quoted.place} vmap @${map}`] });
}

/** The chain has the interface in its name: a chain cannot change its interface. */
function renderIngress(families: readonly FamilyPorts[], interfaceName: string, to: Rendering): void {
  const rules = families.flatMap(({ places, ports }) => {
    const { ip, suffix, fragmentKey } = places;
    const isOurs = `${ip} daddr { ${[...new Set(ports.map(({ address }) => address))].join(', ')} }`;
    const elements = ports.map((port) => {
      return `${port.address} . ${protocolNumbers[port.protocol]} . ${port.port} : goto in-${nameOf(port)}`;
    });
    const place = `${ip} daddr . meta l4proto . th dport`;
    const map = fillMap(to, { name: `ports${suffix}`, type: `${place} : verdict`, elements });
    const fragment = `meta priority set ${fragmentKey} map @fragments${suffix} goto send${suffix}`;
    return [
      `${place} vmap @${map}`,
      `${isOurs} ${places.isLaterFragment} ${fragment}`,
      `${isOurs} ${places.errors} goto errors${suffix}`,
    ];
  });
  const hook = `type filter hook ingress device "${interfaceName}" priority 0; policy accept;`;
  to.chains.push({ name: `ingress-${interfaceName.replaceAll(/[^\w.-]/g, '_')}`, rules: [hook, ...rules] });
}

/** Chains after those they lead to, as they were rendered. */
function textOf({ filled, learnt, chains }: Rendering): string {
  const maps = [...filled, ...learnt].map(([name, text]) => `  map ${name} { ${text} }\n`);
  const rules = chains.map(
    ({ name, rules: all }) => `  chain ${name} {\n${all.map((rule) => `    ${rule}\n`).join('')}  }\n`,
  );
  return [...maps, ...rules].join('');
}
