import { readFile } from 'node:fs/promises';
import { millis, type Millis, seconds } from '@switchyard/core';
import type { Service } from '@switchyard/core/kubernetes';
import { exampleObjects } from '@switchyard/loss/testing';
import { expect, test } from 'vitest';
import { rolloutReport } from '../../src/rollout/rollout-report.ts';
import type {
  NodeChange,
  PodTimes,
  RequestOutcome,
  RequestResult,
  RolloutRecording,
  SliceChange,
} from '../../src/rollout-watch/recording.ts';
import { watchHtml } from '../../src/rollout-watch/watch-html.ts';
import { placeOf, watchReport, type WatchReport } from '../../src/rollout-watch/watch-report.ts';
import { watchText } from '../../src/rollout-watch/watch-text.ts';
import { unbalancedTags } from '../unbalanced-tags.ts';

const begin = Date.parse('2026-03-01T12:00:00.250Z');
const at = (second: number): Millis => millis(begin + second * 1000);

function pod(
  name: string,
  address: string,
  times: Partial<Record<'created' | 'ready' | 'deleted' | 'removed', number>>,
): PodTimes {
  const time = (second: number | undefined): Millis | undefined => (second === undefined ? undefined : at(second));
  return {
    name,
    node: name === 'web-old' ? 'node1' : 'node2',
    addresses: [address],
    isFormer: times.created === undefined,
    created: time(times.created),
    ready: time(times.ready),
    deleted: time(times.deleted),
    removed: time(times.removed),
  };
}

function slice(second: number, address: string, condition: SliceChange['condition'], isBefore = false): SliceChange {
  return { at: at(second), service: 'web', address, condition, isBefore };
}

function apply(second: number, node: string, address: string, condition: NodeChange['condition']): NodeChange {
  return { at: at(second), node, service: 'shop/web:http/TCP IPv4', address, condition };
}

/** One request every 100 ms from 1 s before the rollout; `lost`: outcomes by number. */
function requests(lost: Readonly<Record<number, RequestOutcome>>): readonly RequestResult[] {
  return Array.from({ length: 80 }, (_, index) => {
    const outcome = lost[index] ?? 'answered';
    const sentAt = at(-1 + index / 10);
    return { sentAt, doneAt: millis(sentAt + (outcome === 'timeout' || outcome === 'unanswered' ? 900 : 4)), outcome };
  });
}

const [oldIp, newIp] = ['10.244.1.7', '10.244.2.9'];
/** A rollout with surge whose old pod ends at once. */
const surge: RolloutRecording = {
  begin: millis(begin),
  end: at(4.31),
  pods: [pod('web-old', oldIp, { deleted: 2.1, removed: 4.3 }), pod('web-new', newIp, { created: 0.04, ready: 2.05 })],
  slices: [
    slice(-2, oldIp, 'ready', true),
    slice(0.1, newIp, 'notReady'),
    slice(2.08, newIp, 'ready'),
    slice(2.12, oldIp, 'terminating'),
    slice(4.32, oldIp, 'removed'),
  ],
  nodes: [
    { node: 'node1', isObserver: false, accuracy: millis(2.5), blindness: undefined },
    { node: 'node2', isObserver: false, accuracy: millis(4.2), blindness: 'the kernel has no BTF' },
  ],
  applies: [
    apply(0.11, 'node1', newIp, 'notReady'),
    apply(0.12, 'node2', newIp, 'notReady'),
    apply(2.09, 'node1', newIp, 'ready'),
    apply(2.1, 'node2', newIp, 'ready'),
    apply(2.119, 'node1', oldIp, 'terminating'),
    apply(2.45, 'node2', oldIp, 'terminating'),
    apply(4.33, 'node1', oldIp, 'removed'),
  ],
  packets: [
    {
      at: at(2.6),
      node: 'node1',
      service: 'shop/web:http/TCP',
      cause: 'applicationGone',
      why: '10.244.1.7:8080 no longer listens',
      certainty: 'likely',
      count: 3,
    },
  ],
  requests: requests({ 31: 'reset', 32: 'refused', 33: 'refused', 34: 'refused', 60: 'timeout' }),
};
/** A rollout without surge and without agents, which did not end. */
const gap: RolloutRecording = {
  ...surge,
  end: undefined,
  pods: [pod('web-old', oldIp, { deleted: 0.02, removed: 0.3 }), pod('web-new', newIp, { created: 0.35 })],
  slices: [
    slice(-2, oldIp, 'ready', true),
    slice(0.05, oldIp, 'terminating'),
    slice(0.31, oldIp, 'removed'),
    slice(0.4, newIp, 'notReady'),
  ],
  nodes: [],
  applies: [],
  packets: [],
  requests: requests({ 10: 'empty', 12: 'refused', 40: 'refused' }),
};
const calm: RolloutRecording = { ...surge, nodes: surge.nodes.slice(0, 1), packets: [], requests: requests({}) };

/** The same beside another proxy. */
const observed: RolloutRecording = {
  ...surge,
  nodes: surge.nodes.map((one) => ({ ...one, isObserver: true })),
  requests: requests({ 34: 'refused', 60: 'timeout', 70: 'unanswered' }),
  packets: [],
};

const { deployments, service, nodes } = exampleObjects({
  service: { type: 'ClusterIP', externalTrafficPolicy: undefined, clusterIP: '10.96.0.20' },
});
const objects = { namespace: 'shop', deployment: deployments[0]!, services: [service], pods: [], nodes };
const cluster = { daemonSets: [], kubeProxyReplacement: undefined, hasGate: false };
const options = { rate: 10, proxyDelay: undefined, loadBalancer: undefined, drain: seconds(0) };

function report(recording: RolloutRecording, url = 'http://10.96.0.20/'): WatchReport {
  const proxy = recording === observed ? 'kube-proxy' : 'switchyard';
  const prediction = rolloutReport({ ...objects, ...cluster }, { ...options, proxy });
  const load = { url: new URL(url), rate: 10 };
  return watchReport(recording, { namespace: 'shop', deployment: 'web', services: [service], prediction, load });
}

test.each([
  ['gap', gap],
  ['calm', calm],
  ['observed', observed],
])('%s', async (file, recording) => {
  await expect(watchText(report(recording))).toMatchFileSnapshot(`../golden/rollout-watch/${file}.txt`);
});

test('the page shows what the program prints', async () => {
  const page = await readFile(new URL('../../../../docs/operate/rollout-watch.md', import.meta.url), 'utf8');
  expect(page).toContain(watchText(report(surge)));
});

test.each([
  ['surge', surge, false],
  ['gap', gap, false],
  ['calm', calm, true],
  ['requests that were all answered, and a lost packet', { ...surge, requests: requests({}) }, false],
  ['no requests', { ...calm, requests: undefined }, true],
  ['no end', { ...calm, end: undefined }, false],
] as const)('lossless: %s', (_, recording, isLossless) => {
  expect(report(recording).isLossless).toBe(isLossless);
});

test.each<[what: string, recording: RolloutRecording, causes: readonly string[]]>([
  [
    'a connection that a pod broke is not refused by a Service',
    surge,
    ['podEnds', 'applicationGone', 'applicationGone', 'applicationGone', 'unexplained'],
  ],
  [
    'a pod may break accepted connections until it is removed',
    { ...surge, packets: [], requests: requests({ 40: 'reset', 41: 'refused', 54: 'reset' }) },
    ['podEnds', 'unexplained', 'unexplained'],
  ],
  ['without a ready pod', gap, ['podEnds', 'noReadyPod', 'noReadyPod']],
  [
    'without the agents',
    { ...surge, nodes: [], applies: [], packets: [] },
    ['podEnds', 'podEnds', 'unexplained', 'unexplained', 'unexplained'],
  ],
])('causes: %s', (_, recording, causes) => {
  expect(report(recording).requests?.lost.map(({ cause }) => cause)).toEqual(causes);
});

test('a change counts from its first sight, and misses nodes that have not applied it', () => {
  const { changes } = report(surge);
  expect(changes.map(({ condition, slowest, missing }) => [condition, slowest?.node, slowest?.delay, missing])).toEqual(
    [
      ['notReady', 'node2', 20, []],
      ['ready', 'node2', 20, []],
      ['terminating', 'node2', 331, []],
      ['removed', 'node1', 10, ['node2']],
    ],
  );
});

test('a node that skips a condition has applied it with the next one', () => {
  const applies = [apply(2.2, 'node1', oldIp, 'removed')];
  const [, , terminating] = report({ ...calm, applies }).changes;
  expect(terminating).toMatchObject({ condition: 'terminating', applied: 1, slowest: { delay: 80 } });
});

test.each<[url: string, place: ReturnType<typeof placeOf>]>([
  ['http://10.96.0.20/', { service: 'web', clients: 'inside' }],
  ['http://web.shop/x', { service: 'web', clients: 'inside' }],
  ['http://web.shop.svc.cluster.local:8080/', { service: 'web', clients: 'inside' }],
  ['http://[fd00::1]/', { service: 'web', clients: 'inside' }],
  ['http://172.18.0.2:30080/', { service: 'web', clients: 'outside' }],
  ['https://192.0.2.1/', { service: 'web', clients: 'outside' }],
  ['https://lb.example/', { service: 'web', clients: 'outside' }],
  ['https://shop.example/', undefined],
])('%s leads to %j', (url, place) => {
  const balanced: unknown = {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20', 'fd00::1'], ports: [{ port: 80, nodePort: 30_080 }] },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { hostname: 'lb.example' }] } },
  };
  expect(placeOf(new URL(url), [balanced as Service])).toEqual(place);
});

test('a URL of another name has no prediction', () => {
  const one = report(calm, 'https://shop.example/');
  expect(one.requests?.isPredicted).toBeUndefined();
  expect(watchText(one)).toContain('The URL is no address, port or name of these Services.');
});

test('the HTML page is well-formed, loads nothing, and has a row for each pod and a mark for each loss', () => {
  const html = watchHtml(report(surge), surge);
  expect(unbalancedTags(html)).toEqual([]);
  expect(html).not.toMatch(/<script|src=|href=/);
  expect([...html.matchAll(/data-pod="([^"]+)"/g)].map(([, name]) => name)).toEqual(['web-old', 'web-new']);
  expect(html.match(/class="lost"/g)).toHaveLength(6);
  expect(html.match(/class="slice"/g)).toHaveLength(4);
  expect(html.match(/class="apply"/g)).toHaveLength(7);
  expect(html).toContain('5 requests lost, 3 packets lost');
});

test.each([
  ['<p>a<br/></p>', []],
  ['<p>a<b></p>', ['</p>', '<p>']],
  ['<p a="<">x</p>', ['</p>', '<p a="<">x']],
])('%s has the faults %j', (html, faults) => {
  expect(unbalancedTags(html)).toEqual(faults);
});
