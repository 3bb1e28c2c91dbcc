import type { V1Node, V1Service } from '@kubernetes/client-node';
import { InvariantError, parseIp } from '@switchyard/core';
import {
  type LoadBalancerNode,
  type LoadBalancerService,
  nodeFromApi,
  serviceFromApi,
} from '../cluster/cluster-objects.ts';

/** The parts of a raw Service a test cares about. */
export interface RawServiceSpec {
  readonly spec?: Partial<V1Service['spec']>;
  readonly status?: V1Service['status'];
  readonly createdAt?: string;
  readonly isBeingDeleted?: boolean;
  /** Replaces or adds to what the others say. */
  readonly metadata?: V1Service['metadata'];
}

/** A raw Service as the API server sends it: LoadBalancer, one TCP port 80 with NodePort 30080, IPv4. */
export function rawService(
  key: string,
  { spec = {}, status, createdAt, isBeingDeleted, metadata = {} }: RawServiceSpec = {},
): V1Service {
  const [namespace = '', name = ''] = key.split('/');
  return {
    metadata: {
      namespace,
      name,
      resourceVersion: '1',
      // Text on the wire; the model's type says Date.
      creationTimestamp: (createdAt ?? '2026-01-01T00:00:00Z') as unknown as Date,
      ...(isBeingDeleted === true ? { deletionTimestamp: '2026-01-02T00:00:00Z' as unknown as Date } : {}),
      ...metadata,
    },
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.10',
      ipFamilies: ['IPv4'],
      ports: [{ port: 80, nodePort: 30080, protocol: 'TCP' }],
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** The same, projected. */
export function lbService(key: string, parts: RawServiceSpec = {}): LoadBalancerService {
  const service = serviceFromApi(rawService(key, parts));
  if (service === undefined) throw new InvariantError(`the test's Service ${key} was refused`);
  return service;
}

/** A raw Node with these InternalIPs. */
export function rawNode(name: string, addresses: readonly string[], changes: Partial<V1Node> = {}): V1Node {
  return {
    ...changes,
    metadata: { name, ...changes.metadata },
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address: parseIp(address) })) },
  };
}

/** The same, projected. */
export function lbNode(name: string, addresses: readonly string[], changes: Partial<V1Node> = {}): LoadBalancerNode {
  const node = nodeFromApi(rawNode(name, addresses, changes));
  if (node === undefined) throw new InvariantError(`the test's Node ${name} was refused`);
  return node;
}
