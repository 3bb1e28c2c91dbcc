import { readFile } from 'node:fs/promises';
import { millis, seconds } from '@switchyard/core';
import type { Node } from '@switchyard/core/kubernetes';
import { type ExampleChanges, exampleNode, exampleObjects } from '@switchyard/loss/testing';
import { expect, test } from 'vitest';
import type { RolloutObjects } from '../../src/rollout/read-rollout.ts';
import { reportText } from '../../src/rollout/report-text.ts';
import { type CheckOptions, rolloutReport, type RolloutReport } from '../../src/rollout/rollout-report.ts';

const options: CheckOptions = {
  rate: 20,
  proxy: 'kube-proxy:1.33',
  proxyDelay: undefined,
  loadBalancer: undefined,
  drain: undefined,
};
const clusterIp = { type: 'ClusterIP', externalTrafficPolicy: undefined };

function report(changes: ExampleChanges, more: Partial<CheckOptions & RolloutObjects> = {}): RolloutReport {
  const { deployments, service, pods, nodes } = exampleObjects(changes);
  const objects: RolloutObjects = {
    namespace: 'shop',
    deployment: deployments[0]!,
    services: [service],
    pods,
    nodes,
    daemonSets: [],
    kubeProxyReplacement: undefined,
    hasGate: false,
    ...more,
  };
  const found = rolloutReport(objects, { ...options, ...more });
  if (found === undefined) throw new Error('no path');
  return found;
}

const googleNodes = ['a', 'b', 'c', 'd'].map((name) => ({
  ...(exampleNode(name, { providerID: `gce://project/zone/${name}` }) as Node),
  status: { nodeInfo: { kubeletVersion: 'v1.33.4' } },
}));
const kubeProxy = { name: 'kube-proxy', image: 'registry.k8s.io/kube-proxy:v1.33.4' };
const kubeadm = {
  proxy: undefined,
  daemonSets: [
    {
      metadata: { name: 'kube-proxy' },
      spec: { selector: {}, template: { spec: { containers: [kubeProxy] } } },
    },
  ],
};
const observer = {
  metadata: { name: 'switchyard-observer' },
  spec: {
    selector: {},
    template: {
      spec: {
        containers: [{ name: 'observer', command: ['kube-proxy', '--switchyard-observe', '--switchyard-drain-gate'] }],
      },
    },
  },
};
const measured = { ...kubeadm, delay: { longest: millis(1970), changes: 412, nodes: 4 } };
const three = { replicas: 3, strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } } };

test.each<[file: string, changes: ExampleChanges, more: Partial<CheckOptions & RolloutObjects>]>([
  ['quiet-metrics', { service: clusterIp }, { ...kubeadm, delay: { ...measured.delay, longest: millis(900) } }],
  ['no-metrics', { service: clusterIp }, { ...kubeadm, delay: { why: 'kubectl port-forward: forbidden' } }],
  ['lossless', { service: clusterIp, container: { lifecycle: { preStop: { sleep: { seconds: 5 } } } } }, {}],
  [
    'outage',
    { service: clusterIp, deployment: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } },
    { drain: seconds(0), proxy: undefined },
  ],
  [
    'recreate-behind-cilium',
    {
      service: { type: 'NodePort', externalTrafficPolicy: 'Local' },
      deployment: { strategy: { type: 'Recreate' } },
      container: { readinessProbe: undefined },
    },
    { proxy: 'cilium:1.17', rate: 100 },
  ],
  [
    'old-kube-proxy',
    { container: { lifecycle: { preStop: { exec: { command: ['/drain.sh'] } } } } },
    { proxy: 'kube-proxy:1.25', loadBalancer: 'azure-lb' },
  ],
  [
    'the-hole',
    { container: { lifecycle: { preStop: { sleep: { seconds: 10 } } } } },
    { loadBalancer: 'cloud-provider-kind-envoy', drain: seconds(0) },
  ],
  ['drain-gate', { service: clusterIp }, { hasGate: true, proxy: 'switchyard', drain: seconds(0) }],
  [
    'drain-gate-beside-kube-proxy',
    { service: clusterIp },
    { ...kubeadm, hasGate: true, daemonSets: [...kubeadm.daemonSets, observer] },
  ],
  [
    'request-hook',
    { service: clusterIp, container: { lifecycle: { preStop: { httpGet: { path: '/quit', port: 8080 } } } } },
    {},
  ],
  ['nowhere', { service: clusterIp, nodes: [exampleNode('a')] }, {}],
  [
    'gate-without-agents',
    {
      service: { ...clusterIp, sessionAffinity: 'ClientIP' },
      container: {
        lifecycle: { preStop: { exec: { command: ['sh', '-c', 'curl "http://gate/drain?pod=$POD_IP"'] } } },
      },
    },
    { hasGate: true },
  ],
])('%s', async (file, changes, more) => {
  await expect(reportText(report(changes, more))).toMatchFileSnapshot(`../golden/rollout/${file}.txt`);
});

test('the page shows what the program prints', async () => {
  const page = await readFile(new URL('../../../../docs/operate/rollout-check.md', import.meta.url), 'utf8');
  expect(page).toContain(reportText(report({ deployment: three, nodes: googleNodes }, measured)));
});

test('as JSON it has requests, times, causes and patches', () => {
  const one = report({ service: clusterIp }, { rate: 1000, drain: seconds(0) });
  expect(one).toMatchObject({
    deployment: 'web',
    isLossless: false,
    paths: [{ clients: 'inside', service: 'web', by: 'clusterIp', mustServe: 1150 }],
    suggestion: { patches: [{ kind: 'deployment', name: 'web' }] },
  });
  expect(one.paths[0]?.requests.most).toBeGreaterThan(500);
  expect(JSON.parse(JSON.stringify(one))).toHaveProperty('paths.0.lostTime.worst', one.paths[0]?.lostTime.worst);
});

test('a Deployment with headless Services only has no report', () => {
  const { deployments, service, pods, nodes } = exampleObjects({ service: { ...clusterIp, clusterIP: 'None' } });
  const objects = { deployment: deployments[0]!, services: [service], pods, nodes };
  const rest = { namespace: 'shop', daemonSets: [], kubeProxyReplacement: undefined, hasGate: false };
  expect(rolloutReport({ ...objects, ...rest }, options)).toBeUndefined();
});

test('a load balancer that is not known must be named', () => {
  expect(() => report({})).toThrow(/name one that checks as often: --load-balancer cloud-provider-kind\|/);
});
