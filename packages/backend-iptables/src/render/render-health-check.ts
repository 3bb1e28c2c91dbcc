import type { HealthCheck } from '@switchyard/core';
import type { ChainRule } from './chains.ts';
import { chainNames } from './names.ts';
import { commentOf, ruleOf } from './rule-text.ts';

/** Lets load balancers ask the health check server of a Service, whatever the policy of INPUT is. Pure. */
export function renderHealthCheck({ service, port }: HealthCheck): ChainRule {
  const comment = commentOf(`${service} health check node port`);
  return {
    table: 'filter',
    chain: chainNames.nodePorts,
    rule: ruleOf('-p tcp', comment, `-m tcp --dport ${port}`, '-j ACCEPT'),
  };
}
