import { type ForwardingTable, millis, parseIp } from '@switchyard/core';
import { service, serviceCidr, slice, strictTraits, tableOf, tableOptions } from '@switchyard/core/testing';
import type { NodeView } from '../causes/drop-subject.ts';
import { ServiceIndex } from '../causes/service-index.ts';
import type { ServiceView } from '../loss-reader.ts';
import { nodeNetns } from './placed-drop.ts';

/** Services of tests in the ServiceCIDR 10.96.0.0/16, on node n1. */
export const shop: ForwardingTable = tableOf({
  services: [
    service('shop/cart', { ports: [{ port: 80, nodePort: 30080 }] }),
    service('shop/empty', { clusterIps: ['10.96.0.11'], ports: [{ port: 80, nodePort: 30081 }] }),
    service('shop/guarded', {
      clusterIps: ['10.96.0.12'],
      loadBalancerIps: ['198.51.100.8'],
      sourceRanges: ['10.0.0.0/8'],
    }),
    service('shop/remote', { clusterIps: ['10.96.0.14'], internal: 'Local' }),
    service('shop/names', { clusterIps: ['10.96.0.15'], ports: [{ port: 53, protocol: 'UDP' }] }),
  ],
  slices: [
    slice('shop/cart', {
      endpoints: [
        { ip: '10.244.1.5', node: 'n1' },
        { ip: '10.244.2.5', node: 'n2' },
      ],
    }),
    slice('shop/guarded', { endpoints: ['10.244.3.1'] }),
    slice('shop/remote', { endpoints: [{ ip: '10.244.2.7', node: 'n2' }] }),
    slice('shop/names', { endpoints: ['10.244.1.6'], ports: [{ port: 5353, protocol: 'UDP' }] }),
  ],
  serviceCidrs: [serviceCidr('kubernetes', '10.96.0.0/16')],
});

/** IPv6 Services in fd00:10:96::/112: `shop/six` has an endpoint, `shop/empty` has none. */
export const shopOfSix: ForwardingTable = tableOf(
  {
    services: [
      service('shop/six', { clusterIps: ['fd00:10:96::a'] }),
      service('shop/empty', { clusterIps: ['fd00:10:96::b'] }),
    ],
    slices: [slice('shop/six', { endpoints: ['fd00:10:244:1::5'] })],
    serviceCidrs: [serviceCidr('kubernetes', 'fd00:10:96::/112')],
  },
  tableOptions({ ipFamily: 'IPv6' }),
);

/** View of the node with these Services; its tables were applied a minute ago. */
export function serviceView(overrides: Partial<ServiceView> = {}): ServiceView {
  return {
    tables: new Map([
      ['IPv4', shop],
      ['IPv6', shopOfSix],
    ]),
    tableAges: new Map([
      ['IPv4', millis(60_000)],
      ['IPv6', millis(60_000)],
    ]),
    proxyLag: millis(0),
    traits: strictTraits,
    nodeAddresses: [parseIp('192.0.2.1'), parseIp('10.244.1.1')],
    podCidrs: [],
    ...overrides,
  };
}

/** The same view for one drop. */
export function nodeView(overrides: Partial<NodeView> = {}): NodeView {
  const { traits, nodeAddresses } = serviceView();
  const table = overrides.table ?? shop;
  const index = new ServiceIndex();
  index.follow(table);
  const indexBefore = overrides.tableBefore === undefined ? undefined : new ServiceIndex();
  if (overrides.tableBefore !== undefined) indexBefore?.follow(overrides.tableBefore);
  return {
    table,
    tableBefore: undefined,
    tableThen: table,
    index,
    indexBefore,
    traits,
    nodeAddresses: new Set(nodeAddresses),
    formerAddresses: new Set(),
    netns: nodeNetns,
    conntrack: { full: 0, clashes: 0 },
    firstHops: 64,
    ...overrides,
  };
}
