import { expect, test } from 'vitest';
import { rolloutCases } from './run-rollout-case.ts';

test('a cell has a case per workload, policy and family', () => {
  const ids = (cell: 'ipv4' | 'ipv6' | 'dual'): readonly string[] =>
    rolloutCases({ dataplane: 'nftables', cell }).map(({ id }) => id);
  expect(ids('ipv6')).toEqual([
    'rollout/deployment/Local/ipv6',
    'rollout/deployment/Cluster/ipv6',
    'rollout/daemonset/Local/ipv6',
    'rollout/daemonset/Cluster/ipv6',
  ]);
  expect(ids('dual')).toEqual([...ids('ipv4'), ...ids('ipv6')]);
});

test('only what goes through a load balancer needs one', () => {
  const needing = rolloutCases({ dataplane: 'ebpf', cell: 'ipv4' }).filter(({ needs }) =>
    needs.includes('loadBalancer'),
  );
  expect(needing.map(({ id }) => id)).toEqual(['rollout/deployment/Local/ipv4', 'rollout/daemonset/Local/ipv4']);
});
