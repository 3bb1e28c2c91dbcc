import type { IpFamily } from '@switchyard/core';
import { actions, endpointFlags, frontendFlags } from '../../src/render/layouts.ts';
import type { SocketSite } from './socket-site.ts';
import type { WrittenMaps } from './written-maps.ts';

export const tcp = 6;
export const udp = 17;

/** Results of three classes, in the order pod, node, outside. */
export function actionsFor(pod: number, node: number = pod, outside: number = node): number {
  return pod | (node << 3) | (outside << 6);
}

const { reject, cluster, local, drop } = actions;

/** The ports of the one cluster IP, and what is behind them. */
export const ports = {
  /** Pods a and b. */
  both: 80,
  /** Nothing: reject. */
  none: 81,
  /** Nothing on this node: drop. */
  dropped: 82,
  /** Pods a and b, with affinity. */
  affinity: 83,
  /** Pods use a, the node uses b. */
  byClass: 84,
  /** nftables carries it for sockets. */
  passed: 85,
  /** Pod a, and what a test makes of it. */
  changing: 86,
  /** A port of pod a without a listener. */
  closed: 87,
  /** Pods a and b by turns, under load. */
  swapped: 88,
  /** Pod b, while the other one is swapped. */
  unswapped: 89,
  /** No frontend. */
  unknown: 99,
  nodePort: 30_090,
} as const;

/** Services by the port they have at the cluster IP; its last digits are also their id, and their cookie. */
export type PortName = keyof typeof ports;

/** Addresses of services, of the node and an unused one, as an application writes them. */
export const vips: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:10:96::1' };
export const unallocated: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.77', IPv6: 'fd00:10:96::77' };

/** Ids of the endpoints at the pods of a service. */
export const endpointOf = (service: number, pod: 'a' | 'b'): number => service * 2 + (pod === 'a' ? 0 : 1);

/** Where the slots of a service begin; it has 64. */
export const slotsOf = (service: number): number => service * 64;

/** Writes the services above. */
export function writeWorld(site: SocketSite, family: IpFamily): void {
  const { maps } = site.instances[family];
  const { inCluster, inLocal, alive } = endpointFlags;
  const write = (name: PortName, pods: readonly ('a' | 'b')[], rest: Rest = {}): void => {
    const id = ports[name] % 1000;
    for (const pod of ['a', 'b'] as const) {
      const flags = alive | (pods.includes(pod) ? inCluster | inLocal : 0);
      const { port = 8080 } = rest;
      maps.endpoint(endpointOf(id, pod), { address: site.address(pod, family), port, service: id, flags });
    }
    maps.service(id, { cookie: id, affinity_seconds: rest.affinity ?? 0 });
    maps.publish(id, 'cluster_set', maps.slots(id, slotsOf(id), pods.map((pod) => endpointOf(id, pod)))); // prettier-ignore
    const at = { address: rest.address ?? vips[family], port: ports[name], service: id, cookie: id };
    for (const protocol of [tcp, udp]) maps.frontend({ ...at, protocol, actions: rest.actions ?? actionsFor(cluster) });
  };
  write('both', ['a', 'b']);
  write('none', [], { actions: actionsFor(reject) });
  write('dropped', [], { actions: actionsFor(drop) });
  write('affinity', ['a', 'b'], { affinity: 100 });
  write('byClass', ['a'], { actions: actionsFor(cluster, local) });
  maps.publish(ports.byClass, 'local_set', maps.slots(ports.byClass, slotsOf(ports.byClass) + 8, [endpointOf(ports.byClass, 'b')])); // prettier-ignore
  write('passed', ['a'], { actions: actionsFor(cluster) | frontendFlags.socketsPass });
  write('changing', ['a']);
  write('closed', ['a'], { port: 9 });
  write('swapped', ['a']);
  write('unswapped', ['b']);
  write('nodePort', ['b'], { address: 'nodePort' });
  maps.guard(vips[family]);
  maps.nodeAddress(site.node.addresses[family] ?? '');
}

interface Rest {
  readonly actions?: number;
  readonly affinity?: number;
  readonly port?: number;
  readonly address?: string;
}

/** Another set for a service, in slots of its own. */
export function republish(maps: WrittenMaps, name: PortName, pods: readonly ('a' | 'b')[], range = 1): void {
  const id = ports[name] % 1000;
  const endpoints = pods.map((pod) => endpointOf(id, pod));
  maps.publish(id, 'cluster_set', maps.slots(id, slotsOf(id) + range * 4, endpoints));
}
