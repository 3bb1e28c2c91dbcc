import type { Service } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { refuseOtherLoadBalancers } from './preflight.ts';

const service = (namespace: string, name: string, type: string): Service => ({
  metadata: { namespace, name },
  spec: { type },
});

test('load balancers of others are refused by name, those of runs and other types are not', () => {
  const ours = [service('run', 'a', 'LoadBalancer'), service('shop', 'b', 'NodePort')];
  expect(() => refuseOtherLoadBalancers(ours, ['run'])).not.toThrow();
  expect(() => refuseOtherLoadBalancers([...ours, service('shop', 'web', 'LoadBalancer')], ['run'])).toThrow(
    /may be in use: shop\/web; .*--allow-other-load-balancers/,
  );
});

test('of many only the first are named', () => {
  const many = Array.from({ length: 13 }, (_, index) => service('shop', `s${index}`, 'LoadBalancer'));
  expect(() => refuseOtherLoadBalancers(many, [])).toThrow(/shop\/s9 and 3 more;/);
});
