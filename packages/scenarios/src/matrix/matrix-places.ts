import { type IpAddress, type IpFamily, parseIp, parsePort, type Port, type TrafficPolicy } from '@switchyard/core';
import { nodeAddresses } from '../cluster-objects.ts';
import { inFamily } from '../other-family.ts';
import type { ScenarioPort, ScenarioService } from '../scenario.ts';
import { endpointStates } from './endpoint-states.ts';
import type { MatrixFrontend } from './matrix-rules.ts';

/** Every kind of frontend, in the order of the matrix. */
export const matrixFrontends: readonly MatrixFrontend[] = ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'];

/** Both policies, in the order of the matrix. */
export const matrixPolicies: readonly TrafficPolicy[] = ['Cluster', 'Local'];

/** Which Service of the matrix. */
export interface MatrixPlace {
  readonly frontend: MatrixFrontend;
  readonly policy: TrafficPolicy;
  /** Id of its endpoint state. */
  readonly state: string;
  readonly ipFamily: IpFamily;
}

const shortNames: Readonly<Record<MatrixFrontend, string>> = {
  clusterIP: 'cip',
  externalIP: 'eip',
  loadBalancerIP: 'lb',
  nodePort: 'np',
};

/** Default fields of all Services of the matrix. */
export const plainService = {
  otherClusterIP: undefined,
  externalTrafficPolicy: 'Cluster',
  internalTrafficPolicy: 'Cluster',
  externalIPs: [],
  loadBalancerIPs: [],
  loadBalancerSourceRanges: [],
  sessionAffinityTimeoutSeconds: undefined,
  labels: {},
} as const satisfies Partial<ScenarioService>;

/** The Service of a place, with names, addresses and NodePorts that no other place has, so that all can be there at once. */
export function serviceOf(place: MatrixPlace): ScenarioService {
  const { frontend, policy, state, ipFamily } = place;
  return {
    ...plainService,
    name: `matrix/${shortNames[frontend]}-${policy.toLowerCase()}-${state}-${ipFamily.slice(-2).toLowerCase()}`,
    type: frontend === 'nodePort' ? 'NodePort' : frontend === 'loadBalancerIP' ? 'LoadBalancer' : 'ClusterIP',
    clusterIP: clusterIpOf(place),
    ports: portsOf(frontend, nodePortOf(place)),
    ...(frontend === 'clusterIP' ? { internalTrafficPolicy: policy } : { externalTrafficPolicy: policy }),
    externalIPs: frontend === 'externalIP' ? [frontendAddress(place)] : [],
    loadBalancerIPs: frontend === 'loadBalancerIP' ? [{ ip: frontendAddress(place), ipMode: undefined }] : [],
    healthCheckNodePort: healthPortOf(place),
  };
}

/** Where a packet to the frontend of a place goes. */
export function targetOf(place: MatrixPlace): { readonly to: IpAddress; readonly port: Port } {
  return { to: frontendAddress(place), port: place.frontend === 'nodePort' ? nodePortOf(place) : servicePort };
}

function frontendAddress(place: MatrixPlace): IpAddress {
  switch (place.frontend) {
    case 'clusterIP':
      return clusterIpOf(place);
    case 'externalIP':
      return inFamily(`203.0.113.${100 + numberOf(place)}`, place.ipFamily);
    case 'loadBalancerIP':
      return inFamily(`198.51.100.${100 + numberOf(place)}`, place.ipFamily);
    case 'nodePort':
      return parseIp(nodeAddresses[place.ipFamily]['node1'] ?? '');
  }
}

function clusterIpOf(place: MatrixPlace): IpAddress {
  return inFamily(`10.96.${20 + matrixFrontends.indexOf(place.frontend)}.${numberOf(place)}`, place.ipFamily);
}

const servicePort = parsePort(80);

/** The same number in all three protocols, as the API server allows within one Service. */
function portsOf(frontend: MatrixFrontend, nodePort: Port): readonly ScenarioPort[] {
  const hasNodePort = frontend === 'nodePort' || frontend === 'loadBalancerIP';
  return (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({
    name: protocol.toLowerCase(),
    port: servicePort,
    protocol,
    nodePort: hasNodePort ? nodePort : undefined,
  }));
}

/** From 1; unique among the places of the same frontend and family. */
function numberOf({ policy, state }: MatrixPlace): number {
  const index = endpointStates.findIndex(({ id }) => id === state);
  return matrixPolicies.indexOf(policy) * endpointStates.length + index + 1;
}

/** Of the cluster, not of a family: the API server hands each number out once. */
function nodePortOf(place: MatrixPlace): Port {
  const block = matrixFrontends.indexOf(place.frontend) * 2 + (place.ipFamily === 'IPv4' ? 0 : 1);
  return parsePort(31_000 + 100 * block + numberOf(place));
}

/** The API server accepts a healthCheckNodePort only for type LoadBalancer with the policy Local. */
function healthPortOf(place: MatrixPlace): Port | undefined {
  if (place.frontend !== 'loadBalancerIP' || place.policy !== 'Local') return undefined;
  return parsePort(32_200 + (place.ipFamily === 'IPv4' ? 0 : 100) + numberOf(place));
}
