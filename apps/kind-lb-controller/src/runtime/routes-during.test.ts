import { parseCidr, parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { RouteSpec } from '../spec/load-balancer-spec.ts';
import { exampleSpec } from '../testing/example-specs.ts';
import { routesDuring, routesOf } from './routes-during.ts';

const route = (destination: string, via: string): RouteSpec => ({
  destination: parseCidr(destination),
  via: parseIp(via),
});

test('load balancers share routes: each destination is there once', () => {
  const routes = [route('10.244.1.0/24', '172.18.0.11')];
  expect(routesOf([exampleSpec('one', { routes }), exampleSpec('two', { routes })])).toEqual(routes);
});

test('while HAProxy changes over, old routes stay unless a new one says otherwise', () => {
  const before = [route('10.244.1.0/24', '172.18.0.11'), route('10.244.2.0/24', '172.18.0.12')];
  const next = [route('10.244.2.0/24', '172.18.0.13')];
  expect(routesDuring(before, next)).toEqual([next[0], before[0]]);
});
