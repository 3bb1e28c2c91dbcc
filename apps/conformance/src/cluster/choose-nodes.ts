import type { Node } from '@switchyard/core/kubernetes';
import { ConfigError, type IpAddress, type IpFamily, ipFamilyOf, tryParseIp } from '@switchyard/core';

/** A node of the cluster that stands for one of a scenario's. */
export interface RealNode {
  readonly name: string;
  /** The node's first InternalIP of each family. */
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
  /** Value of the label `topology.kubernetes.io/zone`; undefined: it has none. */
  readonly zone: string | undefined;
  readonly kernel: string;
}

/** The two nodes of every scenario: the one under test, and the other one. */
export interface NodePair {
  readonly node1: RealNode;
  readonly node2: RealNode;
}

/** Reason why a node cannot run pods; undefined: it can. */
export function nodeObstacle({ metadata, spec, status }: Node): string | undefined {
  const os = metadata?.labels?.['kubernetes.io/os'] ?? status?.nodeInfo?.operatingSystem ?? 'linux';
  if (os !== 'linux') return `runs ${os}`;
  if (spec?.unschedulable === true) return 'is cordoned';
  if (!(status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True')) {
    return 'is not Ready';
  }
  const taint = (spec?.taints ?? []).find(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
  if (taint !== undefined) return `has the taint ${taint.key}`;
  return Object.keys(addressesOf(status)).length === 0 ? 'has no InternalIP' : undefined;
}

/**
 * The two nodes to use: the named ones, or the first two usable ones by name. Throws `ConfigError` that names the reason against
 * each node.
 */
export function chooseNodes(nodes: readonly Node[], wanted?: readonly [string, string]): NodePair {
  const sorted = nodes.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }));
  const usable = sorted.filter((node) => nodeObstacle(node) === undefined);
  if (wanted !== undefined) {
    const [node1, node2] = wanted.map((name) => named(sorted, name)) as [Node, Node];
    if (node1 === node2) throw new ConfigError('cluster.nodes', `--nodes names ${wanted[0]} twice; two are needed`);
    return { node1: realNode(node1), node2: realNode(node2) };
  }
  const [node1, node2] = usable;
  if (node1 !== undefined && node2 !== undefined) return { node1: realNode(node1), node2: realNode(node2) };
  const others = sorted.flatMap((node) => {
    const why = nodeObstacle(node);
    return why === undefined ? [] : [`${nameOf(node)} ${why}`];
  });
  const against = others.length === 0 ? '' : `: ${others.join(', ')}`;
  throw new ConfigError(
    'cluster.nodes',
    `two Linux nodes are needed that are Ready and take pods, one under test and one outside; of ${nodes.length} there ` +
      `can be used ${usable.map(nameOf).join(', ') || 'none'}${against}`,
  );
}

function named(nodes: readonly Node[], name: string): Node {
  const node = nodes.find((one) => nameOf(one) === name);
  if (node === undefined) {
    throw new ConfigError('cluster.nodes', `there is no node ${name}; there are ${nodes.map(nameOf).join(', ')}`);
  }
  const obstacle = nodeObstacle(node);
  if (obstacle === undefined) return node;
  throw new ConfigError('cluster.nodes', `node ${name} cannot be used: it ${obstacle}`);
}

function realNode(node: Node): RealNode {
  return {
    name: nameOf(node),
    addresses: addressesOf(node.status),
    zone: node.metadata?.labels?.['topology.kubernetes.io/zone'],
    kernel: node.status?.nodeInfo?.kernelVersion ?? 'unknown',
  };
}

function addressesOf(status: Node['status']): RealNode['addresses'] {
  const addresses: Partial<Record<IpFamily, IpAddress>> = {};
  for (const { type, address } of status?.addresses ?? []) {
    const ip = type === 'InternalIP' ? tryParseIp(address) : undefined;
    if (ip !== undefined) addresses[ipFamilyOf(ip)] ??= ip;
  }
  return addresses;
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? '';
}
