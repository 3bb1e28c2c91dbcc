import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { describe, expect, test } from 'vitest';
import { compareRuns, disagreementText } from '../compare-runs.ts';
import { dataplanes, referenceDataplane } from '../dataplanes.ts';
import { runOnTable } from '../run-on-table.ts';
import type { Scenario } from '../scenario.ts';
import { expectationText, healthText } from '../verdict.ts';
import { endpointStates } from './endpoint-states.ts';
import { healthRules, masqueradeRules, outcomeRules, reachRules } from './matrix-rules.ts';
import { type MatrixScenario, matrixScenarios } from './matrix-scenarios.ts';

const titleOf = ({ scenario }: MatrixScenario): string => `${scenario.id} ${scenario.ipFamily}`;
const nftables = matrixScenarios(referenceDataplane);

describe.each(dataplanes)('core as $name', (dataplane) => {
  const rows = matrixScenarios(dataplane).map((one) => [titleOf(one), one.scenario] as const);

  test.each(rows)('does what the rules say: %s', (_, scenario) => {
    expect(disagreementText(compareRuns(scenario, [runOnTable(scenario)]))).toBe('');
  });

  test('without the fallback, differs from the rules exactly where a rule of KEP-1669 decides', () => {
    const differs = matrixScenarios(dataplane).filter(({ scenario }) => {
      const agent = { ...scenario.agent, terminatingFallback: 'off' } as const;
      return runOnTable({ ...scenario, agent }).steps.some(({ isAsExpected }) => !isAsExpected);
    });
    const ofFallback = new Set(['terminating-fallback', 'nobody-here-terminating-elsewhere']);
    const byRule = matrixScenarios(dataplane).filter(({ rules }) => rules.some((rule) => ofFallback.has(rule)));
    expect(differs.map(titleOf)).toEqual(byRule.map(titleOf));
    expect(byRule.length).toBeGreaterThan(0);
  });
});

describe('the rules', () => {
  test('have each id once, and each decides something', () => {
    const ids = [...reachRules, ...outcomeRules, ...masqueradeRules, ...healthRules].map(({ id }) => id);
    const used = dataplanes.flatMap((dataplane) => matrixScenarios(dataplane).flatMap(({ rules }) => rules));
    expect([...ids].sort()).toEqual([...new Set(used)].sort());
  });

  test.each([
    [
      'cluster IP, Cluster, ready both: a pod reaches both',
      'clusterIP-Cluster-ready-both',
      'pod',
      'forward to 10.244.1.5, 10.244.2.5',
    ],
    ['cluster IP, Local, ready elsewhere: a pod gets silence', 'clusterIP-Local-ready-remote-only', 'pod', 'drop'],
    ['cluster IP, Local, none: a pod is refused', 'clusterIP-Local-none', 'pod', 'reject'],
    [
      'cluster IP from outside: masqueraded',
      'clusterIP-Cluster-ready-local-only',
      'outside',
      'forward to 10.244.1.5, masqueraded',
    ],
    [
      'NodePort, Local, ready both: outside reaches the local one, which sees it',
      'nodePort-Local-ready-both',
      'outside',
      'forward to 10.244.1.5',
    ],
    [
      'NodePort, Local, ready elsewhere: the node short-circuits',
      'nodePort-Local-ready-remote-only',
      'node',
      'forward to 10.244.2.5, masqueraded',
    ],
    ['NodePort, Local, ready elsewhere: outside gets silence', 'nodePort-Local-ready-remote-only', 'outside', 'drop'],
    [
      'load-balancer IP, Local: a terminating local one serves outside though another node has a ready one',
      'loadBalancerIP-Local-terminating-local-beside-ready-remote',
      'outside',
      'forward to 10.244.1.6',
    ],
    [
      'the same with Cluster: the ready one gets it',
      'loadBalancerIP-Cluster-terminating-local-beside-ready-remote',
      'outside',
      'forward to 10.244.2.5, masqueraded',
    ],
    [
      'external IP, all terminating: both serve',
      'externalIP-Cluster-terminating-both',
      'pod',
      'forward to 10.244.1.6, 10.244.2.6, masqueraded',
    ],
    [
      'external IP, stopped beside terminating, Local: silence, not an error',
      'externalIP-Local-stopped-beside-terminating',
      'outside',
      'drop',
    ],
    ['the last endpoint that no longer serves gets nothing', 'nodePort-Cluster-stopped-alone', 'outside', 'reject'],
  ] as const)('say: %s', (_, id, from, expected) => {
    const one = nftables.find(({ scenario }) => scenario.id === `matrix-${id}` && scenario.ipFamily === 'IPv4');
    const texts = one?.scenario.steps.flatMap((step) =>
      step.kind === 'flow' && step.flow.from === from ? [expectationText(step.flow.expect)] : [],
    );
    expect(texts).toEqual([expected, expected, expected]);
  });

  test.each([
    ['ready-both', '200 with 1 local endpoint(s)'],
    ['ready-remote-only', '503 with 0 local endpoint(s)'],
    ['terminating-local-beside-ready-remote', '503 with 0 local endpoint(s)'],
    ['not-ready', '503 with 0 local endpoint(s)'],
  ])('say that the health check of %s answers %s', (state, expected) => {
    const one = nftables.find(({ scenario }) => scenario.id === `matrix-loadBalancerIP-Local-${state}`);
    const last = one?.scenario.steps.at(-1);
    expect(last?.kind === 'healthCheck' ? healthText(last.check) : last?.kind).toBe(expected);
  });

  test.each([
    [iptablesTraits, 'externalIP-Cluster-none', 'node', ['pass', 'pass', 'pass']],
    [iptablesTraits, 'nodePort-Cluster-none', 'node', ['reject', 'reject', 'reject']],
    [nftablesTraits, 'externalIP-Cluster-none', 'node', ['reject', 'reject', 'reject']],
    [
      ebpfTraits,
      'nodePort-Cluster-ready-local-only',
      'pod',
      ['forward to 10.244.1.5', 'forward to 10.244.1.5', 'forward to 10.244.1.5, masqueraded'],
    ],
  ] as const)('know $0.name: $1 from $2', (dataplane, id, from, expected) => {
    const one = matrixScenarios(dataplane).find(({ scenario }) => scenario.id === `matrix-${id}`);
    const texts = one?.scenario.steps.flatMap((step) =>
      step.kind === 'flow' && step.flow.from === from ? [expectationText(step.flow.expect)] : [],
    );
    expect(texts).toEqual(expected);
  });
});

describe('the Services of the matrix', () => {
  const services = nftables.flatMap(({ scenario }) => scenario.services);
  const duplicates = (values: readonly string[]): readonly string[] =>
    values.filter((value, index) => values.indexOf(value) !== index);

  test('are one for each frontend, policy, endpoint state and family', () => {
    expect(nftables).toHaveLength(4 * 2 * endpointStates.length * 2);
    expect(duplicates(nftables.map(titleOf))).toEqual([]);
  });

  test('share no name, address or NodePort', () => {
    expect(duplicates(services.map(({ name }) => name))).toEqual([]);
    const addresses = services.flatMap(({ clusterIP, externalIPs, loadBalancerIPs }) => [
      clusterIP,
      ...externalIPs,
      ...loadBalancerIPs.map(({ ip }) => ip),
    ]);
    expect(duplicates(addresses)).toEqual([]);
    const nodePorts = services.flatMap(({ ports, healthCheckNodePort }) => [ports[0]?.nodePort, healthCheckNodePort]);
    expect(duplicates(nodePorts.filter((port) => port !== undefined).map(String))).toEqual([]);
  });

  test('have names that are DNS labels, also with what slices put behind', () => {
    const labels = services.map(({ name }) => name.replace('matrix/', ''));
    expect(labels.filter((label) => !/^[a-z][a-z0-9-]{0,50}[a-z0-9]$/.test(label))).toEqual([]);
  });

  test('stay as they are while they are looked at, by every source and protocol, and the health check of a Local load balancer', () => {
    const flows = (scenario: Scenario): readonly string[] =>
      scenario.steps.map((step) => (step.kind === 'flow' ? `${step.flow.from}/${step.flow.protocol}` : step.kind));
    const all = ['pod', 'node', 'outside'].flatMap((from) => ['TCP', 'UDP', 'SCTP'].map((one) => `${from}/${one}`));
    for (const { scenario, frontend, policy } of nftables) {
      const hasHealth = frontend === 'loadBalancerIP' && policy === 'Local';
      expect(flows(scenario)).toEqual(hasHealth ? [...all, 'healthCheck'] : all);
    }
  });
});
