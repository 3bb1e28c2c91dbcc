import type { ConformanceCase, ScenarioCase, SequenceCase } from '../model/case.ts';
import { InvariantError } from '@switchyard/core';
import { loadScenario, type Scenario } from '@switchyard/scenarios';

const text = `name: a Service forwards
why: kube-proxy
given:
  services:
    - { name: shop/cart, clusterIP: 10.96.0.10, ports: [{ name: http, port: 80 }] }
  endpoints:
    - { service: shop/cart, ip: 10.244.2.5, node: node2 }
steps:
  - { from: pod, to: '10.96.0.10:80/TCP', expect: { forward: [10.244.2.5], masquerade: false } }
`;

let known: Scenario | undefined;

/** Each case gets a copy, so that tests can distinguish them. */
function read(): Scenario {
  known ??= loadScenario('test', text)[0];
  if (known === undefined) throw new InvariantError('the scenario of tests has no family');
  return known;
}

/** A case that is a scenario: a pod reaches the only endpoint of a cluster IP. */
export function scenarioCase(id: string, more: Partial<ScenarioCase> = {}): ScenarioCase {
  return { kind: 'scenario', ...about(id), scenario: { ...read() }, batch: undefined, ...more };
}

/** A case that is a program. */
export function sequenceCase(id: string, run: SequenceCase['run'], more: Partial<SequenceCase> = {}): SequenceCase {
  return { kind: 'sequence', ...about(id), tags: ['sequence'], run, ...more };
}

function about(id: string): Pick<ConformanceCase, 'id' | 'title' | 'why' | 'tags' | 'families' | 'needs' | 'notFor'> {
  const tags = ['scenario', 'tcp'];
  return { id, title: `title of ${id}`, why: 'kube-proxy', tags, families: 'IPv4', needs: [], notFor: undefined };
}
