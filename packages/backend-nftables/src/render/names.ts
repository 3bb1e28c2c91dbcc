import { type IpFamily, type Millis, type Protocol, seconds, type TrafficPolicy } from '@switchyard/core';

/**
 * Every name this backend has in the kernel, and how a process with no memory recognises it.
 *
 * The birthmark: an `inet` table with one of the owner's two names (`TableNames`) that holds a set `birthmark` whose only element
 * is a digest of the rule set's text. Equal digest: our rules exactly, adopt. Other digest: rules of
 * another build, replace. Two names, so that the successor is filled beside its predecessor.
 *
 * Every map and set of one IP family ends in `4` or `6`. That holds for every version there will be:
 * it is how one version empties what another left, family by family, without knowing its format. What
 * belongs to the rules themselves must not end so.
 */
export type TableNames = readonly [first: string, second: string];

/** The names of the nftables mode. Library users have names of their own. */
export const tableNames: TableNames = ['switchyard', 'switchyard-2'];

export type TableName = string;

/** The set whose only element is the rule set's digest. */
export const birthmarkSet = 'birthmark';

/** The set with a mark for everything the rules are made of; see `rule-marks.ts`. */
export const ruleMarksSet = 'rule-marks';

/** With a size the kernel's table never grows; a growing one cannot be listed reliably, and rules look foreign. */
export const ruleMarksSize = 65_536;

/** How names and rules spell a family. */
export type FamilySuffix = '4' | '6';

/** The suffix of every object of one IP family. */
export function suffixOf(family: IpFamily): FamilySuffix {
  return family === 'IPv4' ? '4' : '6';
}

/** Maps and sets whose elements are written one by one, without their suffix, in the order of a make-before-use write. */
export const elementObjects = [
  'endpoints',
  'aff-endpoints',
  'aff-slots',
  'hairpin',
  'fw-allow',
  'to-cluster',
  'to-local',
  'frontends',
  'nodeports',
  'cluster-ips',
] as const;

/** A map or set of services, without its suffix. */
export type ElementObject = (typeof elementObjects)[number];

/** Interval sets, written as a whole: they are small, and nft cannot change single intervals safely. */
export const intervalObjects = ['pod-cidrs', 'pod-interfaces', 'nodeport-ips', 'service-cidrs'] as const;

/** Kind of the keys of an interval set, by its name without suffix. */
export function intervalKind(object: string): 'address' | 'interface' {
  return object === 'pod-interfaces' ? 'interface' : 'address';
}

export type IntervalObject = (typeof intervalObjects)[number];

/** A map or set with its suffix: its name in the kernel. */
export type ObjectName = `${ElementObject | IntervalObject | DropSet}${FamilySuffix}`;

/** Element maps whose elements each have a counter: packets that were looked up there, that is, new connections. */
export const countedObjects = ['frontends', 'nodeports'] as const;

export type CountedObject = (typeof countedObjects)[number];

/** Sets that rules fill: refused packets per service id, by reason, for `dropSetSize` ids. */
export const dropSets = ['drops-no-local', 'drops-no-endpoints', 'drops-source'] as const;

export type DropSet = (typeof dropSets)[number];

/** How many service ids a drop set can hold. */
export const dropSetSize = 65_536;

/** The map of clients to the endpoints they keep: written by rules, with a timeout per element. Without its suffix. */
export const affinityMap = 'affinity';

/** How many clients keep their endpoints, over all Services of a family; the ones that come later are balanced. */
export const affinityMapSize = 262_144;

/** When the rules were last known to be right, without suffix: elapsed timeout of its element, by the kernel's clock. */
export const heartbeatSet = 'heartbeat';

/** Lifetime of the heartbeat element; after it the age is unknown. */
export const heartbeatTimeout: Millis = seconds(1000 * 24 * 3600);

/** The map that leads from a service's id to its endpoints, per policy. */
export const setMapOf: Readonly<Record<TrafficPolicy, 'to-cluster' | 'to-local'>> = {
  Cluster: 'to-cluster',
  Local: 'to-local',
};

export const nftProtocols: Readonly<Record<Protocol, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

/** Protocol numbers of the IP header, by nft's name. */
export const protocolNumbers: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

/** Mark bit for masquerading: kube-proxy's default, bit 14. Cleared again once used. */
export const masqueradeMark = 0x4000;
