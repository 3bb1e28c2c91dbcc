import { describe, expect, test } from 'vitest';
import { compareRuns, disagreementText } from '../compare-runs.ts';
import { dataplanes, referenceDataplane } from '../dataplanes.ts';
import { runOnTable } from '../run-on-table.ts';
import { expectationText, healthText } from '../verdict.ts';
import { endingOrders, endingScenarios, everyEndingStep } from './ending-orders.ts';

test('there are as many orders as ways to put three steps between three others', () => {
  expect(new Set(endingOrders).size).toBe(20);
  expect(endingOrders.filter((order) => [...order].sort().join('') !== 'eeehhh')).toEqual([]);
});

test('six of them take every step from every pair of conditions', () => {
  const count = (text: string, letter: string): number => text.split(letter).length - 1;
  const steps = everyEndingStep.flatMap((order) =>
    [...order].map((turn, index) => {
      const before = order.slice(0, index);
      return `${count(before, 'h')}${count(before, 'e')}${turn}`;
    }),
  );
  const all = [0, 1, 2, 3].flatMap((here) =>
    [0, 1, 2, 3].flatMap((elsewhere) => [
      ...(here < 3 ? [`${here}${elsewhere}h`] : []),
      ...(elsewhere < 3 ? [`${here}${elsewhere}e`] : []),
    ]),
  );
  expect([...new Set(steps)].sort()).toEqual(all.sort());
  expect(everyEndingStep.filter((order) => !endingOrders.includes(order))).toEqual([]);
});

describe.each(dataplanes)('core as $name', (dataplane) => {
  test.each(endingScenarios(dataplane, endingOrders).map((scenario) => [scenario.ipFamily, scenario] as const))(
    'does what the rules say in every moment of every order, %s',
    (_, scenario) => {
      expect(disagreementText(compareRuns(scenario, [runOnTable(scenario)]))).toBe('');
    },
  );
});

test('what a Service shows, from ready to gone, when here and elsewhere take turns', () => {
  const [scenario] = endingScenarios(referenceDataplane);
  const service = scenario?.services.find(({ name }) => name === 'matrix/ending-hehehe-v4');
  const to = service?.loadBalancerIPs[0]?.ip;
  const seen = (scenario?.steps ?? []).flatMap((step) => {
    if (step.kind === 'flow' && step.flow.to === to) return [expectationText(step.flow.expect)];
    if (step.kind === 'flow' && step.flow.to === service?.clusterIP) return [expectationText(step.flow.expect)];
    return step.kind === 'healthCheck' && step.check.service === service?.name ? [healthText(step.check)] : [];
  });
  const healthy = '200 with 1 local endpoint(s)';
  const unhealthy = '503 with 0 local endpoint(s)';
  const moments = Array.from({ length: seen.length / 3 }, (_, round) => seen.slice(3 * round, 3 * round + 3));
  expect(moments).toEqual([
    ['forward to 10.244.1.5', 'forward to 10.244.1.5, 10.244.2.5', healthy],
    ['forward to 10.244.1.5', 'forward to 10.244.2.5', unhealthy],
    ['forward to 10.244.1.5', 'forward to 10.244.1.5, 10.244.2.5', unhealthy],
    ['drop', 'forward to 10.244.2.5', unhealthy],
    ['reject', 'reject', unhealthy],
    ['reject', 'reject', unhealthy],
    ['reject', 'reject', unhealthy],
  ]);
});
