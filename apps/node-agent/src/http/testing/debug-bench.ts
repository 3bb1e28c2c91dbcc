import {
  type ForwardingTable,
  type IpFamily,
  type Millis,
  millis,
  noopLogger,
  nodeName,
  parseCidr,
  parseIp,
  type ServicePortKey,
  systemClock,
} from '@switchyard/core';
import { type Failure, type FamilyStatus } from '@switchyard/core/engine';
import { type HttpAnswer, type HttpHandler } from '@switchyard/core/health';
import {
  getRequest,
  node,
  service,
  serviceCidr,
  slice,
  tableOf,
  tableOptions,
  wholeAnswer,
} from '@switchyard/core/testing';
import { debugRoutes } from '../metrics-routes.ts';
import type { DebugState } from '../debug-state.ts';
import { router } from '../route.ts';

/** Now, for everything built here. */
export const now: Millis = millis(Date.parse('2026-11-21T10:00:00Z'));

const cluster = {
  services: [
    service('shop/cart', {
      clusterIps: ['10.96.0.10', 'fd00:10:96::10'],
      external: 'Local',
      affinitySeconds: 600,
      healthCheckNodePort: 30001,
      ports: [{ name: 'http', port: 80, nodePort: 30080 }],
      loadBalancerIps: ['198.51.100.7'],
    }),
    service('shop/cart-api', { clusterIps: ['10.96.0.11'] }),
    service('shop/empty', { clusterIps: ['10.96.0.12'] }),
  ],
  slices: [
    slice('shop/cart', {
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [
        { ip: '10.244.1.5', node: 'n1' },
        { ip: '10.244.2.5', node: 'n2' },
        { ip: '10.244.2.6', node: 'n2', ready: false, serving: false },
      ],
    }),
    slice('shop/cart-api', { endpoints: ['10.244.1.9'] }),
  ],
  nodes: [node('n1')],
  serviceCidrs: [serviceCidr('kubernetes', '10.96.0.0/16')],
};

/** The table of a family of a small cluster. */
export function tableOfFamily(ipFamily: IpFamily, more: Parameters<typeof tableOptions>[0] = {}): ForwardingTable {
  const nodePortCidrs = ipFamily === 'IPv4' ? ['192.0.2.1/32'] : [];
  const options = tableOptions({ ipFamily, nodePortCidrs, ...more });
  const podDetector =
    ipFamily === 'IPv4' ? ({ kind: 'cidr', cidr: parseCidr('10.244.0.0/16') } as const) : ({ kind: 'none' } as const);
  return tableOf(cluster, {
    ...options,
    podDetector,
    ...('podDetector' in more ? { podDetector: more.podDetector } : {}),
  });
}

/** Options of a test. */
export interface DebugBenchOptions {
  /** Default: nftables. */
  readonly mode?: string;
  /** Default: all. */
  readonly socketLb?: 'all' | 'host';
  readonly tables?: ReadonlyMap<IpFamily, ForwardingTable>;
  readonly failed?: ReadonlyMap<ServicePortKey, Failure>;
  readonly family?: Partial<FamilyStatus>;
  readonly dump?: (signal: AbortSignal) => Promise<string>;
}

/** A state of node n1 with both families applied. */
export function debugState(options: DebugBenchOptions = {}): DebugState {
  const {
    mode = 'nftables',
    socketLb = 'all',
    failed = new Map(),
    dump = async () => '# IPv4: x\nfrontend x\n',
  } = options;
  const tables =
    options.tables ??
    new Map<IpFamily, ForwardingTable>([
      ['IPv4', tableOfFamily('IPv4')],
      ['IPv6', tableOfFamily('IPv6')],
    ]);
  const family = (ipFamily: IpFamily): FamilyStatus => ({
    ipFamily,
    lastApplied: now,
    generation: tables.get(ipFamily)?.generation,
    slicesVersion: 0,
    pendingFor: undefined,
    failure: undefined,
    failedServices: ipFamily === 'IPv4' ? failed : new Map(),
    ...options.family,
  });
  const ipFamilies: readonly IpFamily[] = ['IPv4', 'IPv6'];
  return {
    nodeName: nodeName('n1'),
    mode,
    socketLb,
    ipFamilies,
    tables: () => tables,
    status: () => ({
      isInSync: true,
      missingResources: [],
      isNodeEligible: true,
      families: new Map(ipFamilies.map((one) => [one, family(one)])),
    }),
    onApplied: () => () => undefined,
    interfaceAddresses: () => [parseIp('192.0.2.1'), parseIp('10.244.1.1')],
    proxyLag: millis(0),
    podCidrs: () => [],
    serviceCounters: async () => [],
    clock: systemClock,
    dumps: [dump, async () => '# IPv6: x\n'],
    now: () => now,
  };
}

/** Asks a handler; the body whole. */
export async function ask(
  handler: HttpHandler,
  path: string,
  more: Parameters<typeof getRequest>[1] = {},
): Promise<HttpAnswer> {
  return wholeAnswer(handler(getRequest(path, more), new AbortController().signal));
}

/** The debugging endpoints over a state. */
export function debugHandler(state: DebugState): HttpHandler {
  return router(debugRoutes(state), noopLogger);
}
