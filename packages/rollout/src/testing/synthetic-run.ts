import { defaultAgentMode } from '@switchyard/lab';
import { knownChecks } from '@switchyard/loss';
import { millis, type Millis } from '@switchyard/core';
import { healthCheckOf } from '../profiles.ts';
import type { EndpointMoment, HealthCheck, RequestRecord, RunRecord } from '../run-record.ts';

/** The article's load balancer, all durations times `timeScale`. */
export function articleHealthCheck(timeScale: number): HealthCheck {
  return healthCheckOf({ name: 'cloud-provider-kind', ...knownChecks['cloud-provider-kind'] }, {}, timeScale);
}

/** Zero of the synthetic clock: the old pod's deletionTimestamp. */
export const deletedAt: Millis = millis(1_800_000_000_000);

const at = (second: number): Millis => millis(deletedAt + second * 1000);

/**
 * A run like the first measured one with kube-proxy 1.25 (or with the fallback): new node UP at +2.93 s, old node
 * DOWN at +11.70 s, the app serves 30 s. For tests of the analysis and of the picture.
 */
export function syntheticRun(options: { readonly terminatingFallback: boolean }): RunRecord {
  const { terminatingFallback } = options;
  const oldPod = { name: 'zeroapp-old', node: 'node1' };
  const newPod = { name: 'zeroapp-new', node: 'node2' };
  const ends: readonly EndpointMoment[] = [
    { at: at(-5), node: 'node1', state: 'ready' },
    { at: at(-5), node: 'node2', state: 'none' },
    { at: at(-0.03), node: 'node2', state: 'ready' },
    { at: at(0.04), node: 'node1', state: 'servingTerminating' },
    { at: at(30.05), node: 'node1', state: 'none' },
  ];
  return {
    settings: {
      terminatingFallback,
      rate: 20,
      requestTimeout: millis(500),
      healthCheck: articleHealthCheck(1),
      runtime: 'process',
      fastDrain: false,
      delayShutdown: millis(30_000),
      proxyMode: defaultAgentMode,
      timeScale: 1,
    },
    startedAt: at(-5),
    endedAt: at(32),
    nodes: ['node1', 'node2'],
    path: { name: 'load balancer', kind: 'loadBalancer', ipFamily: 'IPv4' },
    moves: [{ oldPod, newPod, deletedAt }],
    requests: requests(terminatingFallback),
    pods: [
      { at: at(-60), pod: oldPod.name, node: oldPod.node, phase: 'ready' },
      { at: at(-0.18), pod: newPod.name, node: newPod.node, phase: 'created' },
      { at: at(-0.04), pod: newPod.name, node: newPod.node, phase: 'ready' },
      { at: at(0), pod: oldPod.name, node: oldPod.node, phase: 'deleting' },
      { at: at(30.03), pod: oldPod.name, node: oldPod.node, phase: 'ended' },
      { at: at(30.06), pod: oldPod.name, node: oldPod.node, phase: 'gone' },
    ],
    endpoints: ends,
    syncs: [-0.02, 0.05, 30.06].flatMap((second) =>
      ['node1', 'node2'].map((node) => ({ at: at(second), node, writes: 3, duration: millis(12) })),
    ),
    health: [
      { at: at(-5), node: 'node1', status: 200 },
      { at: at(-5), node: 'node2', status: 503 },
      { at: at(0), node: 'node2', status: 200 },
      { at: at(0.1), node: 'node1', status: 503 },
    ],
    loadBalancer: [
      { at: at(-60), node: 'node1', isUp: true, reason: 'Layer7 check passed' },
      { at: at(-60), node: 'node2', isUp: false, reason: 'Layer7 wrong status, code: 503' },
      { at: at(2.93), node: 'node2', isUp: true, reason: 'Layer7 check passed' },
      { at: at(11.7), node: 'node1', isUp: false, reason: 'Layer7 wrong status, code: 503' },
    ],
    states: [],
    packetLosses: undefined,
  };
}

function requests(terminatingFallback: boolean): readonly RequestRecord[] {
  return Array.from({ length: 37 * 20 }, (_, sequence) => {
    const second = -5 + sequence / 20;
    const goesToOldNode = second < 2.93 || (second < 11.7 && sequence % 2 === 0);
    const isLost = !terminatingFallback && goesToOldNode && second >= 0.16;
    return {
      sequence,
      scheduledAt: at(second),
      sentAt: at(second),
      doneAt: at(second + (isLost ? 0.5 : 0.002)),
      outcome: isLost ? 'timeout' : 'answered',
      answeredBy: isLost ? undefined : goesToOldNode ? 'zeroapp-old' : 'zeroapp-new',
    };
  });
}
