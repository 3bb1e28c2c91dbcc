import { millis, seconds } from '@switchyard/core';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type KnownCheck, knownChecks } from '../known-checks.ts';
import type { KnownProxy } from '../rollout-setting.ts';
import { exampleNode, exampleObjects } from '../testing/example-objects.ts';
import { forecast, type ForecastObjects, isLossless, lostRequests } from './forecast.ts';
import { applyPatch } from './strategic-patch.ts';
import { type SuggestConditions, suggestChanges } from './suggest-changes.ts';

const hooks = [
  undefined,
  { sleep: { seconds: 3 } },
  { exec: { command: ['sleep', '1'] } },
  { exec: { command: ['sh', '-c', 'sleep 2; nginx -s quit'] } },
  { exec: { command: ['/drain.sh'] } },
  { exec: { command: ['sh', '-c', 'wget -qO- "http://gate:10247/drain?pod=$POD_IP&seconds=4"'] } },
  { exec: { command: ['switchyard-drain-hook', '--seconds', '4'] } },
];
const service = fc.constantFrom(
  { type: 'ClusterIP', externalTrafficPolicy: undefined },
  { type: 'ClusterIP', externalTrafficPolicy: undefined, internalTrafficPolicy: 'Local' },
  { type: 'ClusterIP', externalTrafficPolicy: undefined, sessionAffinity: 'ClientIP' },
  { type: 'NodePort', externalTrafficPolicy: 'Cluster' },
  { type: 'NodePort', externalTrafficPolicy: 'Local' },
  { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster' },
  { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
  { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
);
const strategy = fc.constantFrom(
  { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
  { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
  { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
  { rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } },
  { type: 'Recreate' },
);

interface Case {
  readonly objects: ForecastObjects;
  readonly conditions: SuggestConditions;
  readonly isPerNode: boolean;
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    service,
    strategy,
    replicas: fc.integer({ min: 1, max: 4 }),
    nodes: fc.integer({ min: 1, max: 4 }),
    isPerNode: fc.boolean(),
    hook: fc.constantFrom(...hooks),
    grace: fc.constantFrom(1, 10, 30),
    minReadySeconds: fc.constantFrom(0, 0, 7),
    proxy: fc.constantFrom<KnownProxy>('switchyard', 'kube-proxy', 'kube-proxy-1.25', 'cilium', 'cilium-1.17'),
    gate: fc.constantFrom('answers' as const, 'expires' as const, 'absent' as const),
    drain: fc.constantFrom(undefined, undefined, seconds(0), seconds(5)),
    check: fc.constantFrom(...(Object.keys(knownChecks) as KnownCheck[])),
    hasSleepAction: fc.boolean(),
    proxyDelay: fc.constantFrom(undefined, undefined, seconds(4)),
  })
  .map(({ nodes, isPerNode, hook, grace, proxy, gate, drain, check, hasSleepAction, proxyDelay, ...rest }) => {
    const pod = { terminationGracePeriodSeconds: grace, ...(isPerNode ? {} : { affinity: undefined }) };
    const { deployments, ...example } = exampleObjects({
      service: rest.service,
      deployment: { replicas: rest.replicas, strategy: rest.strategy, minReadySeconds: rest.minReadySeconds },
      pod,
      container: hook === undefined ? {} : { lifecycle: { preStop: hook } },
      nodes: Array.from({ length: nodes }, (_, index) => exampleNode(`node${index}`)),
    });
    return {
      objects: { ...example, deployment: deployments[0]!, services: [example.service] },
      conditions: {
        proxy,
        proxyDelay,
        gate: gate === 'answers' && proxy !== 'switchyard' ? 'expires' : gate,
        drain,
        checkOf: () => ({ name: check, ...knownChecks[check] }),
        hasSleepAction,
      },
      isPerNode,
    };
  });

test('best, expected and worst are in order, as times and as requests', () => {
  fc.assert(
    fc.property(cases, ({ objects, conditions }) => {
      const { paths, isLossless: isWell } = forecast(objects, conditions);
      expect(isLossless(objects, conditions)).toBe(isWell);
      for (const path of paths) {
        const expected = path.expected ?? path.best;
        expect(path.best).toBeLessThanOrEqual(expected);
        expect(expected).toBeLessThanOrEqual(path.worst);
        const { least, most } = lostRequests(path, 20);
        expect(least).toBeLessThanOrEqual((expected * 20) / 1000);
        expect(most).toBeGreaterThanOrEqual((expected * 20) / 1000);
        expect(most === 0).toBe(path.worst === 0);
      }
    }),
    { numRuns: 60 },
  );
});

test('with the suggested patches nothing is lost, and without some place for a pod there is no suggestion', () => {
  let [suggested, hopeless] = [0, 0];
  fc.assert(
    fc.property(cases, ({ objects, conditions, isPerNode }) => {
      if (isLossless(objects, conditions)) return;
      const suggestion = suggestChanges(objects, conditions);
      if (suggestion === undefined) {
        hopeless += 1;
        // No second pod fits on the only node.
        expect({ isPerNode, nodes: objects.nodes.length }).toEqual({ isPerNode: true, nodes: 1 });
        return;
      }
      suggested += 1;
      expect(suggestion.changes.length).toBeGreaterThan(0);
      const patchFor = (kind: string): object => suggestion.patches.find((one) => one.kind === kind)?.patch ?? {};
      const patched: ForecastObjects = {
        ...objects,
        deployment: applyPatch(objects.deployment, { ...patchFor('deployment') }),
        services: objects.services.map((one) => applyPatch(one, { ...patchFor('service') })),
      };
      const { paths, isLossless: isWell } = forecast(patched, conditions);
      expect(paths.map(({ worst }) => worst)).toEqual(paths.map(() => millis(0)));
      expect(isWell).toBe(true);
    }),
    { numRuns: 120 },
  );
  expect(suggested).toBeGreaterThan(50);
  expect(hopeless).toBeLessThan(suggested / 2);
});
