import { type IpAddress, ipFamilyOf, type Protocol } from '@switchyard/core';
import { bucketCount, bucketNodes } from './buckets.ts';
import { type PacketPlaces, packetPlaces } from './packet-places.ts';
import { classId, fillMap, nameOf, type Rendering } from './rendering.ts';
import type { TransparentPort } from './transparent-port.ts';

/** Time that a silent connection keeps its node, in seconds; then its hash decides. AWS' Network Load Balancer has the same. */
const idleSeconds: Readonly<Record<Protocol, number>> = { TCP: 350, UDP: 120, SCTP: 350 };
const maxFlows = 131_072;

/**
 * `in-…` finds the node; `new-…` and `keep-…` remember it for the connection, `affinity-replace-…` and `affinity-remember-…` for the
 * client (session affinity); `about-…` is for errors about connections. Former names of the two: `greet-…`, `meet-…`.
 *
 * An `update` makes an element or refreshes it, but never changes its value: an entry for another node is deleted first. It has
 * a rule of its own: when a map is full it ends the rule it stands in.
 */
export function renderPort(port: TransparentPort, to: Rendering): void {
  const places = packetPlaces[ipFamilyOf(port.address)];
  const { client, suffix } = places;
  const name = nameOf(port);
  const key = `${client} . meta mark`;
  const declaration = `typeof ${key} : meta priority; size ${maxFlows}; flags dynamic,timeout;`;
  to.learnt.set(`flows-${name}`, declaration);
  const remember = `update @flows-${name} { ${key} timeout ${idleSeconds[port.protocol]}s : meta priority }`;
  to.chains.push({ name: `keep-${name}`, rules: [remember, `goto send${suffix}`] });
  const forget = `delete @flows-${name} { ${key} : meta priority }`;
  to.chains.push({ name: `new-${name}`, rules: [forget, `goto keep-${name}`] });
  renderAffinity(port, places, to);
  to.chains.push({
    name: `in-${name}`,
    rules: [
      ...sourceRule(port, places),
      toClientPort('@th,0,32'),
      ...knownRules(port, places, to),
      ...affinityRule(port, places, to),
      ...openingRules(port, places, to),
      newRule(port, places, to),
    ],
  });
  to.chains.push({ name: `about-${name}`, rules: errorRules(port, places, to) });
}

/** Ports are in the upper half, wherever they are read. */
function toClientPort(place: string): string {
  return `meta mark set ${place} and 0xffff0000`;
}

function sourceRule({ allowedSources }: TransparentPort, { ip }: PacketPlaces): readonly string[] {
  return allowedSources === 'any' ? [] : [`${ip} saddr != { ${allowedSources.join(', ')} } drop`];
}

const tcpFlags = 'tcp flags & (fin | syn | rst | ack)';

/** Matches packets that open a connection, and all others. */
const matches = {
  TCP: { opening: `${tcpFlags} == syn `, others: `${tcpFlags} != syn ` },
  SCTP: { opening: 'sctp chunk init exists ', others: 'sctp chunk init missing ' },
} as const;

/** Connections of TCP and SCTP stay with their node while it is there, UP or not: so they do behind a proxy. */
function knownRules(port: TransparentPort, places: PacketPlaces, to: Rendering): readonly string[] {
  const { protocol, forOld, present } = port;
  if (protocol === 'UDP') return toKnown(forOld, port, places, to);
  return toKnown(present, port, places, to).map((rule) => `${matches[protocol].others}${rule}`);
}

/**
 * A packet that opens a connection looks for another node when the remembered one is not UP; a repeated one finds the same node. These
 * rules come after session affinity: a client may use a port again while the former connection is remembered.
 */
function openingRules(port: TransparentPort, places: PacketPlaces, to: Rendering): readonly string[] {
  const { protocol, forNew } = port;
  if (protocol === 'UDP') return [];
  return toKnown(forNew, port, places, to).map((rule) => `${matches[protocol].opening}${rule}`);
}

/** To the remembered node if it is one of these. */
function toKnown(
  nodes: readonly IpAddress[],
  port: TransparentPort,
  { client }: PacketPlaces,
  to: Rendering,
): readonly string[] {
  const name = nameOf(port);
  const known = `meta priority set ${client} . meta mark map @flows-${name}`;
  return nodes.length === 0 ? [] : [`${known} ${isOneOf(nodes, to)} goto keep-${name}`];
}

/** The client's node since its last new connection. */
function renderAffinity(port: TransparentPort, { wholeClient }: PacketPlaces, to: Rendering): void {
  if (port.sessionAffinity.kind === 'none') return;
  const name = nameOf(port);
  const timeout = Math.ceil(port.sessionAffinity.timeout / 1000);
  to.learnt.set(`clients-${name}`, `typeof ${wholeClient} : meta priority; size ${maxFlows}; flags dynamic,timeout;`);
  const remember = `update @clients-${name} { ${wholeClient} timeout ${timeout}s : meta priority }`;
  to.chains.push({ name: `affinity-remember-${name}`, rules: [remember, `goto new-${name}`] });
  const forget = `delete @clients-${name} { ${wholeClient} : meta priority }`;
  to.chains.push({ name: `affinity-replace-${name}`, rules: [forget, `goto affinity-remember-${name}`] });
}

function affinityRule(port: TransparentPort, { wholeClient }: PacketPlaces, to: Rendering): readonly string[] {
  if (port.sessionAffinity.kind === 'none' || port.forNew.length === 0) return [];
  const name = nameOf(port);
  return [
    `meta priority set ${wholeClient} map @clients-${name} ${isOneOf(port.forNew, to)} goto affinity-remember-${name}`,
  ];
}

function newRule(port: TransparentPort, { wholeClient }: PacketPlaces, to: Rendering): string {
  if (port.forNew.length === 0) {
    return port.protocol === 'TCP' ? 'reject with tcp reset' : 'reject with icmpx port-unreachable';
  }
  const next = port.sessionAffinity.kind === 'none' ? 'new' : 'affinity-replace';
  return `${byHash(wholeClient, port, to)} goto ${next}-${nameOf(port)}`;
}

/** A connection without packets yet, or forgotten, is where its hash says. */
function errorRules(port: TransparentPort, { quoted, suffix }: PacketPlaces, to: Rendering): readonly string[] {
  const known = `meta priority set ${quoted.client} . meta mark map @flows-${nameOf(port)}`;
  return [
    toClientPort(quoted.clientPort),
    `${known} goto send${suffix}`,
    ...(port.forNew.length === 0 ? [] : [`${byHash(quoted.wholeClient, port, to)} goto send${suffix}`]),
  ];
}

/** The node of the client's bucket. The seed is a constant: every process must find the same. */
function byHash(wholeClient: string, port: TransparentPort, to: Rendering): string {
  const input = port.sessionAffinity.kind === 'none' ? `${wholeClient} . meta mark` : wholeClient;
  return `meta priority set jhash ${input} mod ${bucketCount} seed 0x53775953 map @${bucketsOf(port.forNew, to)}`;
}

/** Most ports have the same nodes: they share a map. */
function bucketsOf(nodes: readonly IpAddress[], to: Rendering): string {
  const elements = bucketNodes(nodes).map((node, bucket) => `${bucket} : ${classId(to, node)}`);
  return fillMap(to, { name: 'buckets', type: `numgen inc mod ${bucketCount} : meta priority`, elements });
}

function isOneOf(nodes: readonly IpAddress[], to: Rendering): string {
  return `meta priority { ${nodes.map((node) => classId(to, node)).join(', ')} }`;
}
