import { expect, test } from 'vitest';
import { parseIp } from '../ip/address.ts';
import { service, slice } from '../../testing/builders.ts';
import { tableOf } from '../../testing/cluster.ts';
import { endpointUse } from './endpoint-use.ts';

const ready = { ip: '10.244.1.6', node: 'n1' };
const elsewhere = { ip: '10.244.2.5', node: 'n2' };
const draining = { ready: false, serving: true, terminating: true };

test.each<
  [string, { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }, object, object]
>([
  ['ready', {}, {}, { isUsed: true, isEnding: false }],
  ['not ready', { ready: false, serving: false }, {}, { isUsed: false, isEnding: false }],
  ['the last, while it ends', draining, {}, { isUsed: true, isEnding: true }],
  ['ending, beside a ready one', draining, { others: [elsewhere] }, { isUsed: false, isEnding: true }],
  [
    'the last of its node for policy Local',
    draining,
    { others: [elsewhere], internal: 'Local' },
    { isUsed: true, isEnding: true },
  ],
  [
    'ending beside one on its node',
    draining,
    { others: [ready], internal: 'Local' },
    { isUsed: false, isEnding: true },
  ],
  ['ending and not serving', { ...draining, serving: false }, {}, { isUsed: false, isEnding: true }],
])('an endpoint that is %s', (_, endpoint, { others = [], internal = 'Cluster' }: Situation, expected) => {
  const { services } = tableOf({
    services: [service('shop/cart', { internal })],
    slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.5', node: 'n1', ...endpoint }, ...others] })],
  });
  const [cart] = [...services.values()];
  expect(cart).toBeDefined();
  if (cart === undefined) return;
  expect(endpointUse(cart, { address: parseIp('10.244.1.5'), port: 8080 })).toEqual(expected);
  expect(endpointUse(cart, { address: parseIp('10.244.1.5'), port: 80 })).toBeUndefined();
});

interface Situation {
  readonly others?: readonly { readonly ip: string; readonly node: string }[];
  readonly internal?: 'Cluster' | 'Local';
}
