import { expect, test } from 'vitest';
import { flow, service, slice, tableOf } from '../testing/index.ts';
import { explain } from './explain.ts';

const cart = service('shop/cart', {
  clusterIps: ['10.96.0.10'],
  external: 'Local',
  ports: [{ name: 'http', port: 80, nodePort: 30080 }],
  loadBalancerIps: ['198.51.100.7'],
});
const table = tableOf({
  services: [cart],
  slices: [
    slice('shop/cart', {
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [
        { ip: '10.244.2.5', node: 'n2' },
        { ip: '10.244.1.5', node: 'n1' },
      ],
    }),
  ],
});

test.each([
  ['outside', '198.51.100.7:80', ['10.244.1.5'], false],
  ['pod', '198.51.100.7:80', ['10.244.1.5', '10.244.2.5'], false],
  ['node', '192.0.2.1:30080', ['10.244.1.5', '10.244.2.5'], true],
] as const)('%s to %s reaches %j, masqueraded: %s', (from, to, endpoints, masquerade) => {
  const { verdict } = explain(table, flow(from, to, { isLocal: to.startsWith('192.') }));
  expect(verdict).toMatchObject({ kind: 'forward', masquerade });
  expect(verdict.kind === 'forward' && verdict.endpoints.map((e) => e.address)).toEqual(endpoints);
});
