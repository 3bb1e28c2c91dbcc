import { availableParallelism, release, totalmem } from 'node:os';
import { ipFamilies } from '@switchyard/core';
import { apiResources, type Condition, type Node, type ObjectClient } from '@switchyard/core/kubernetes';
import type { LabNode } from '../../lab.ts';
import { findCondition } from '../conditions.ts';

/** The Node object of a lab node as its kubelet registers it. `at` is an API time. */
export function nodeObject(node: LabNode, at: string): Node {
  const podCIDRs = ipFamilies.flatMap((family) => node.podCidrs[family] ?? []);
  const resources = {
    cpu: String(availableParallelism()),
    memory: `${Math.floor(totalmem() / 1024)}Ki`,
    pods: '110',
  };
  const internal = ipFamilies.flatMap((family) => node.addresses[family] ?? []);
  return {
    metadata: {
      name: node.nodeName,
      labels: {
        'kubernetes.io/arch': process.arch === 'x64' ? 'amd64' : process.arch,
        'kubernetes.io/hostname': node.nodeName,
        'kubernetes.io/os': 'linux',
        'topology.kubernetes.io/zone': node.zone,
      },
    },
    spec: { ...(podCIDRs[0] === undefined ? {} : { podCIDR: podCIDRs[0] }), podCIDRs },
    status: {
      addresses: [
        ...internal.map((address) => ({ type: 'InternalIP', address })),
        { type: 'Hostname', address: node.nodeName },
      ],
      conditions: [readyCondition(at)],
      capacity: resources,
      allocatable: resources,
      nodeInfo: { kubeletVersion: 'v1.36.2', kernelVersion: release(), operatingSystem: 'linux' },
    },
  };
}

/** Creates the Node if it is missing and sets Ready. Keeps fields of other writers. */
export async function registerNode(api: ObjectClient, node: LabNode, at: string, signal: AbortSignal): Promise<void> {
  const wanted = nodeObject(node, at);
  const present = await api.find(apiResources.nodes, { name: node.nodeName }, signal);
  const current = present ?? (await api.create(apiResources.nodes, wanted, signal));
  if (findCondition(current.status?.conditions, 'Ready')?.status === 'True') return;
  const status = { ...wanted.status, ...current.status, conditions: [readyCondition(at)] };
  await api.updateStatus(apiResources.nodes, { ...current, status }, signal);
}

function readyCondition(at: string): Condition {
  return {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: 'the lab is running pods of this node',
    lastTransitionTime: at,
    lastHeartbeatTime: at,
  };
}
