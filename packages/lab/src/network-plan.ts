import { type IpAddress, type IpFamily, parseIp, UsageError } from '@switchyard/core';
import type { PerFamily } from './lab.ts';
import { namespaceName, namespacesRoot } from './names.ts';

/** Prefix of the network that joins all hosts of a lab, per family. */
export const nodeNetworks: Readonly<Record<IpFamily, string>> = { IPv4: '172.18.0.0/24', IPv6: 'fd00:172:18::/64' };
/** Cluster IP ranges of every lab. */
export const serviceCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' };
/** Ranges that contain every node's pod CIDR; the value of `--cluster-cidr`. */
export const clusterCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/48' };

/** Host numbers in the node network. Nodes follow from `firstNode`. */
export const hostNumbers: {
  readonly gateway: 1;
  readonly apiServer: 10;
  readonly firstNode: 11;
  readonly loadBalancer: 50;
  readonly client: 100;
} = { gateway: 1, apiServer: 10, firstNode: 11, loadBalancer: 50, client: 100 };

/** Node addresses end before the load balancer's. */
export const maxNodes: number = hostNumbers.loadBalancer - hostNumbers.firstNode;

const firstPod = 2;
const lastPod = 254;

/** Address `number` of the node network in each family; the IPv6 one shows the same digits. */
export function hostAddresses(number: number, families: readonly IpFamily[]): PerFamily<IpAddress> {
  return perFamily(families, (family) => parseIp(family === 'IPv4' ? `172.18.0.${number}` : `fd00:172:18::${number}`));
}

/** Pod CIDRs of node `index`, counted from 1. */
export function podCidrs(index: number, families: readonly IpFamily[]): PerFamily<string> {
  return perFamily(families, (family) => (family === 'IPv4' ? `10.244.${index}.0/24` : `fd00:10:244:${index}::/64`));
}

/** Address of pod `number` (2 to 254) on node `index`; the IPv6 one shows the same digits. */
export function podAddresses(index: number, number: number, families: readonly IpFamily[]): PerFamily<IpAddress> {
  return perFamily(families, (family) =>
    parseIp(family === 'IPv4' ? `10.244.${index}.${number}` : `fd00:10:244:${index}::${number}`),
  );
}

/**
 * Returns the next free number after `last`, round-robin from 2 to 254. Like CNI host-local, this keeps a new pod from
 * getting the address of a pod that was just deleted.
 */
export function nextPodNumber(last: number | undefined, isTaken: (number: number) => boolean): number {
  const count = lastPod - firstPod + 1;
  const start = last === undefined ? 0 : last - firstPod + 1;
  for (let step = 0; step < count; step++) {
    const number = firstPod + ((start + step) % count);
    if (!isTaken(number)) return number;
  }
  throw new UsageError('lab.pods', `cannot add a pod: all ${count} addresses of the node's pod CIDR are taken`);
}

/** Builds a value for each of `families`. */
export function perFamily<T>(families: readonly IpFamily[], make: (family: IpFamily) => T): PerFamily<T> {
  return Object.fromEntries(families.map((family) => [family, make(family)])) as PerFamily<T>;
}

export interface HostPlan {
  readonly name: string;
  /** `node` forwards and owns a pod CIDR; `server` reaches pods through the nodes; `outside` knows only the node network. */
  readonly role: 'node' | 'server' | 'outside';
  /** Host number in the node network. */
  readonly number: number;
  /** Nodes only: counted from 1. */
  readonly nodeIndex?: number;
}

export interface NetworkPlan {
  readonly lab: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly hosts: readonly HostPlan[];
}

/** Name of the namespace that holds the bridge. No program runs there. */
export const switchName = 'switch';

/** A shell script that creates all namespaces of the lab and connects them. Nothing appears outside of them. */
export function renderNetwork(plan: NetworkPlan): string {
  const names = [switchName, ...plan.hosts.map((host) => host.name)];
  const create = names.map((name) => `netns add ${namespaceName(plan.lab, name)}`);
  return [
    batch('ip -batch -', create),
    renderSwitch(plan),
    ...plan.hosts.map((host) =>
      renderNamespace(namespaceName(plan.lab, host.name), {
        sysctls: hostSysctls(plan.ipFamilies, host.role === 'node' ? 'router' : 'host', 'eth0'),
        ip: [...hostLinks(plan, host), ...hostRoutes(plan, host)],
      }),
    ),
  ].join('\n');
}

export interface PodPlan {
  readonly lab: string;
  readonly name: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly addresses: PerFamily<IpAddress>;
  readonly node: { readonly name: string; readonly addresses: PerFamily<IpAddress> };
  /** Of this pod alone in its lab, from 1 up. */
  readonly number: number;
}

/** Name of a pod's veth end in the node. */
export function podInterface(number: number): string {
  return `pod${number}`;
}

/**
 * A shell script that creates a pod's namespace and its routes. Pods are routed, not bridged: the node has
 * one host route per pod. The node's end has no IPv4 address and the pod's next hop is the node's own, so that
 * what the node sends or masquerades to its pods carries the node's address.
 *
 * Node and pod know each other's link addresses for good. All namespaces share one table of learnt neighbours, 1,024 in each
 * family by default (net.ipv4.neigh.default.gc_thresh3), and a dozen labs would fill it: the kernel then drops packets.
 */
export function renderPod(plan: PodPlan): string {
  const pod = namespaceName(plan.lab, plan.name);
  const { IPv4: v4, IPv6: v6 } = plan.addresses;
  const nodeV4 = plan.node.addresses.IPv4;
  const nodeV6 = plan.node.addresses.IPv6;
  const digits = [plan.number >> 8, plan.number & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
  const [nodeEnd, podEnd] = [`02:00:00:01:${digits}`, `02:00:00:02:${digits}`];
  const cable = podInterface(plan.number);
  const atNode = [
    `link add dev ${cable} address ${nodeEnd} type veth peer name eth0 address ${podEnd} netns ${pod}`,
    ...(v6 === undefined ? [] : [`addr add fe80::1/64 dev ${cable} nodad`]),
    `link set ${cable} up`,
    ...(v4 === undefined ? [] : [`route add ${v4}/32 dev ${cable} src ${nodeV4}`]),
    ...(v6 === undefined ? [] : [`route add ${v6}/128 dev ${cable} src ${nodeV6}`]),
    ...known([v4, v6], podEnd, cable),
  ];
  const inPod = [
    'link set lo up',
    ...(v4 === undefined ? [] : [`addr add ${v4}/32 dev eth0`]),
    ...(v6 === undefined ? [] : [`addr add ${v6}/128 dev eth0 nodad`]),
    'link set eth0 up',
    ...(v4 === undefined
      ? []
      : [`route add ${nodeV4}/32 dev eth0 scope link src ${v4}`, `route add default via ${nodeV4} dev eth0 src ${v4}`]),
    ...(v6 === undefined ? [] : [`route add default via fe80::1 dev eth0 src ${v6}`]),
    ...known([v4 && nodeV4, v6 && 'fe80::1'], nodeEnd, 'eth0'),
  ];
  return [
    `ip netns add ${pod}`,
    batch(`ip -n ${namespaceName(plan.lab, plan.node.name)} -batch -`, atNode),
    renderNamespace(pod, { sysctls: hostSysctls(plan.ipFamilies, 'host', 'eth0'), ip: inPod }),
  ].join('\n');
}

function known(addresses: readonly (string | undefined)[], linkAddress: string, device: string): readonly string[] {
  const given = addresses.filter((address) => address !== undefined);
  return given.map((address) => `neighbour add ${address} lladdr ${linkAddress} dev ${device} nud permanent`);
}

/** The bridge also has the network's first address and forwards, so that packets without a route are answered "unreachable". */
function renderSwitch(plan: NetworkPlan): string {
  const addresses = hostAddresses(hostNumbers.gateway, plan.ipFamilies);
  return renderNamespace(namespaceName(plan.lab, switchName), {
    sysctls: hostSysctls(plan.ipFamilies, 'router'),
    ip: [
      'link set lo up',
      'link add dev br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0',
      ...plan.ipFamilies.map((family) => addAddress(family, addresses[family], 'br0')),
      'link set br0 up',
      ...plan.hosts.flatMap((host, index) => [
        `link add dev port${index} type veth peer name eth0 netns ${namespaceName(plan.lab, host.name)}`,
        `link set dev port${index} master br0 up`,
      ]),
      ...podRoutes(plan, switchName), // for its answers to pods
    ],
  });
}

function hostLinks(plan: NetworkPlan, host: HostPlan): readonly string[] {
  const addresses = hostAddresses(host.number, plan.ipFamilies);
  return [
    'link set lo up',
    ...plan.ipFamilies.map((family) => addAddress(family, addresses[family], 'eth0')),
    'link set eth0 up',
  ];
}

/**
 * A node routes other nodes' pods through them and sends the rest, such as untranslated service addresses,
 * to the gateway. An address of its own pod CIDR without a pod is a black hole: with most CNIs a packet for a deleted
 * pod gets no answer.
 */
function hostRoutes(plan: NetworkPlan, host: HostPlan): readonly string[] {
  if (host.role === 'outside') return [];
  if (host.role === 'server') return podRoutes(plan, host.name);
  const gateways = hostAddresses(hostNumbers.gateway, plan.ipFamilies);
  const defaults = plan.ipFamilies.map((family) => `route add default via ${gateways[family]}`);
  return [...defaults, ...podRoutes(plan, host.name)];
}

function podRoutes(plan: NetworkPlan, host: string): readonly string[] {
  return plan.ipFamilies.flatMap((family) =>
    plan.hosts.flatMap(({ name, number, nodeIndex }) => {
      if (nodeIndex === undefined) return [];
      const cidr = podCidrs(nodeIndex, plan.ipFamilies)[family];
      if (name === host) return [`route add blackhole ${cidr}`];
      return [`route add ${cidr} via ${hostAddresses(number, plan.ipFamilies)[family]}`];
    }),
  );
}

function addAddress(family: IpFamily, address: IpAddress | undefined, device: string): string {
  const length = nodeNetworks[family].slice(nodeNetworks[family].indexOf('/'));
  return `addr add ${address}${length} dev ${device}${family === 'IPv6' ? ' nodad' : ''}`;
}

/** Values below /proc/sys/net. One that this kernel lacks is skipped if it is marked optional. */
interface Sysctl {
  readonly path: string;
  readonly value: number;
  readonly isOptional?: boolean;
}

function hostSysctls(families: readonly IpFamily[], role: 'router' | 'host', device?: string): readonly Sysctl[] {
  const scopes = ['all', 'default', ...(device === undefined ? [] : [device])];
  const hasV6 = families.includes('IPv6');
  const forwarding: readonly Sysctl[] =
    role === 'host'
      ? []
      : [
          { path: 'ipv4/ip_forward', value: 1 },
          { path: 'ipv6/conf/all/forwarding', value: 1, isOptional: !hasV6 },
        ];
  const v6 = hasV6
    ? { accept_dad: 0, accept_ra: 0, accept_redirects: 0 } // without waiting for duplicate address detection
    : { disable_ipv6: 1 };
  return [
    ...forwarding, // first: switching it resets the others
    ...scopes.flatMap((scope) => [
      ...values(`ipv4/conf/${scope}`, { rp_filter: 0, accept_redirects: 0, send_redirects: 0, arp_ignore: 0 }),
      ...values(`ipv6/conf/${scope}`, v6, !hasV6),
    ]),
    // A real node's limits on ICMP errors, which are Linux' defaults. Programs that provoke many rejects must expect silence.
    ...values(
      'ipv4',
      { icmp_ratelimit: 1000, icmp_ratemask: 6168, icmp_msgs_per_sec: 1000, icmp_msgs_burst: 50 },
      true,
    ),
    ...values('ipv6/icmp', { ratelimit: 1000 }, true),
  ];
}

function values(folder: string, entries: Readonly<Record<string, number>>, isOptional = false): readonly Sysctl[] {
  return Object.entries(entries).map(([name, value]) => ({ path: `${folder}/${name}`, value, isOptional }));
}

/** Settings first, then links: interfaces must not come up with the defaults. */
function renderNamespace(
  namespace: string,
  parts: { readonly sysctls: readonly Sysctl[]; readonly ip: readonly string[] },
): string {
  const writes = parts.sysctls.map(({ path, value, isOptional }) => {
    const file = `/proc/sys/net/${path}`;
    return `${isOptional === true ? `[ ! -w ${file} ] || ` : ''}echo ${value} > ${file}`;
  });
  return [
    `nsenter --net=${namespacesRoot}/${namespace} sh -eu -s <<'NAMESPACE'`,
    ...writes,
    batch('ip -batch -', parts.ip),
    'NAMESPACE',
  ].join('\n');
}

function batch(command: string, lines: readonly string[]): string {
  return [`${command} <<'BATCH'`, ...lines, 'BATCH'].join('\n');
}
