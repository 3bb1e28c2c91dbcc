import { seconds } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type KnownCheck, knownChecks } from '../known-checks.ts';
import { type ExampleChanges, exampleNode, exampleObjects } from '../testing/example-objects.ts';
import { type SuggestConditions, type Suggestion, suggestChanges } from './suggest-changes.ts';

const clusterIp = { type: 'ClusterIP', externalTrafficPolicy: undefined };

function suggest(
  changes: ExampleChanges,
  { check = 'cloud-provider-kind', ...more }: Partial<SuggestConditions> & { readonly check?: KnownCheck } = {},
): Suggestion | undefined {
  const { deployments, ...example } = exampleObjects(changes);
  const conditions: SuggestConditions = {
    proxy: 'kube-proxy',
    proxyDelay: undefined,
    gate: 'absent',
    drain: undefined,
    checkOf: () => ({ name: check, ...knownChecks[check] }),
    hasSleepAction: true,
    ...more,
  };
  return suggestChanges({ ...example, deployment: deployments[0]!, services: [example.service] }, conditions);
}

const hook = (preStop: object): object => ({ lifecycle: { preStop } });
const container = (preStop: object, { grace, ...more }: { readonly grace?: number; readonly env?: object } = {}) => ({
  template: {
    spec: {
      containers: [{ name: 'app', ...more, lifecycle: { preStop } }],
      ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
    },
  },
});

test.each<
  [
    what: string,
    changes: ExampleChanges,
    conditions: Partial<SuggestConditions> & { readonly check?: KnownCheck },
    spec: object,
  ]
>([
  ['a sleep that outlasts the slowest node', { service: clusterIp }, {}, container({ sleep: { seconds: 2 } })],
  [
    'a sleep as a command, for old kubelets',
    { service: clusterIp },
    { hasSleepAction: false },
    container({ exec: { command: ['sleep', '2'] } }),
  ],
  [
    'a longer sleep of the same kind',
    { service: clusterIp, container: hook({ exec: { command: ['sh', '-c', 'sleep 1'] } }) },
    {},
    container({ exec: { command: ['sleep', '2'] } }),
  ],
  [
    'a sleep before a hook that does something',
    { service: clusterIp, container: hook({ exec: { command: ['/drain.sh', '-x'] } }) },
    {},
    container({ exec: { command: ['sh', '-c', 'sleep 2; exec "$@"', 'sh', '/drain.sh', '-x'] } }, { grace: 32 }),
  ],
  [
    'a longer sleep before it',
    { service: clusterIp, container: hook({ exec: { command: ['sh', '-c', 'sleep 1; nginx -s quit'] } }) },
    {},
    container({ exec: { command: ['sh', '-c', 'sleep 2; nginx -s quit'] } }, { grace: 31 }),
  ],
  ['a sleep for which the grace period has room', {}, {}, container({ sleep: { seconds: 17 } })],
  [
    'a sleep, and the grace period that it needs',
    {},
    { check: 'google-nlb' },
    container({ sleep: { seconds: 26 } }, { grace: 36 }),
  ],
  [
    'minReadySeconds against the hole',
    { container: hook({ sleep: { seconds: 5 } }) },
    { check: 'cloud-provider-kind-envoy' },
    { minReadySeconds: 3 },
  ],
  [
    'surge in the place of an outage',
    {
      service: clusterIp,
      container: hook({ sleep: { seconds: 5 } }),
      deployment: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
    },
    {},
    { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
  ],
  [
    'rolling in the place of Recreate',
    {
      service: clusterIp,
      container: hook({ sleep: { seconds: 5 } }),
      deployment: { strategy: { type: 'Recreate' } },
    },
    {},
    { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
  ],
  [
    'one pod after the other where each node has one',
    {
      service: clusterIp,
      container: hook({ sleep: { seconds: 5 } }),
      deployment: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    },
    {},
    { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
  ],
  [
    'the drain gate where it answers',
    { service: clusterIp },
    { gate: 'answers', proxy: 'switchyard' },
    container(
      {
        exec: {
          command: ['sh', '-c', 'wget -qO- "http://switchyard-drain-gate.kube-system:10247/drain?pod=$POD_IP"'],
        },
      },
      { env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } }] },
    ),
  ],
  [
    'a sleep in the place of a gate that is not there',
    { service: clusterIp, container: hook({ httpGet: { path: '/drain?pod=10.0.0.1', port: 10_247 } }) },
    {},
    container({ httpGet: null, sleep: { seconds: 2 } }),
  ],
])('%s', (_, changes, conditions, spec) => {
  expect(suggest(changes, conditions)?.patches).toEqual([{ kind: 'deployment', name: 'web', patch: { spec } }]);
});

test.each<[command: readonly string[], longer: readonly string[]]>([
  [
    ['sh', '-c', 'curl "http://gate:10247/drain?pod=$POD_IP&seconds=5"'],
    ['sh', '-c', 'curl "http://gate:10247/drain?pod=$POD_IP&seconds=20"'],
  ],
  [
    ['/x/switchyard-drain-hook', '--seconds', '5', '--gate', 'gate:1'],
    ['/x/switchyard-drain-hook', '--seconds', '20', '--gate', 'gate:1'],
  ],
  [
    ['sh', '-c', 'switchyard-drain-hook --gate gate:1 --seconds 5; true'],
    ['sh', '-c', 'switchyard-drain-hook --seconds 20 --gate gate:1 ; true'],
  ],
])('the gate may wait for as long as the load balancer needs: %j', (command, longer) => {
  const conditions = { gate: 'answers', proxy: 'switchyard' } as const;
  const suggestion = suggest({ container: hook({ exec: { command: [...command] } }) }, conditions);
  expect(suggestion?.patches).toEqual([
    { kind: 'deployment', name: 'web', patch: { spec: container({ exec: { command: longer } }) } },
  ]);
  const [change] = suggestion?.changes ?? [];
  expect(change).toMatchObject({ from: command.join(' '), to: 'wait at the drain gate for up to 20 s' });
});

test('policy Cluster where the proxy drops what a load balancer still sends, and where nothing leads clients to a pod', () => {
  const old = { proxy: 'kube-proxy-1.25' as const, drain: seconds(5) };
  expect(suggest({}, old)?.patches.at(-1)).toEqual({
    kind: 'service',
    name: 'web',
    patch: { spec: { externalTrafficPolicy: 'Cluster' } },
  });
  const service = { ...clusterIp, internalTrafficPolicy: 'Local' };
  expect(suggest({ service }, { drain: seconds(5) })).toEqual({
    changes: [{ object: 'service/web', field: 'internalTrafficPolicy', from: 'Local', to: 'Cluster' }],
    patches: [{ kind: 'service', name: 'web', patch: { spec: { internalTrafficPolicy: 'Cluster' } } }],
  });
});

test.each<[what: string, changes: ExampleChanges]>([
  ['a hook that is a request', { service: clusterIp, container: hook({ httpGet: { path: '/quit', port: 80 } }) }],
  ['one node, on which no second pod may run', { service: clusterIp, nodes: [exampleNode('a')] }],
])('no suggestion with %s', (_, changes) => {
  expect(suggest(changes)).toBeUndefined();
});
