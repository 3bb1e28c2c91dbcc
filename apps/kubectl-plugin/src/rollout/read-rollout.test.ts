import { HostError } from '@switchyard/core';
import { exampleObjects } from '@switchyard/loss/testing';
import { expect, test } from 'vitest';
import type { Kubectl } from '../access/kubectl.ts';
import { readRollout } from './read-rollout.ts';

const { signal } = new AbortController();
const { deployments, service, nodes } = exampleObjects();
const other = { metadata: { name: 'other' }, spec: { selector: { app: 'db' } } };
const manual = { metadata: { name: 'manual' }, spec: {} };
const system = '--namespace=kube-system';

/** A kubectl that answers with these objects; a list has several. */
function fakeKubectl(answers: Readonly<Record<string, unknown>>): {
  readonly kubectl: Kubectl;
  readonly calls: string[];
} {
  const calls: string[] = [];
  const kubectl: Kubectl = {
    run: async (args) => {
      const call = args.join(' ');
      calls.push(call);
      const found = Object.entries(answers).find(([what]) => call.startsWith(`get ${what}`))?.[1];
      if (found instanceof Error) throw found;
      return JSON.stringify(Array.isArray(found) ? { items: found } : found);
    },
    lines: async function* () {
      yield* [];
      throw new Error('not used');
    },
    start: async (args) => {
      calls.push(args.join(' '));
      throw new HostError('kubectl.failed', 'kubectl port-forward: forbidden');
    },
  };
  return { kubectl, calls };
}

const query = { deployment: 'web', namespace: 'shop', measuresDelay: true };
const cluster = {
  'deployments.apps/web': deployments[0],
  services: [service, other, manual],
  pods: [],
  nodes,
  [`daemonsets.apps ${system}`]: [{ metadata: { name: 'cilium' } }],
  [`deployments.apps ${system}`]: [{ metadata: { name: 'switchyard-drain-gate' } }],
  [`configmaps ${system}`]: [{ metadata: { name: 'cilium-config' }, data: { 'kube-proxy-replacement': 'true' } }],
};

test('reads the Deployment, the Services that select its pods, and what shows the proxy', async () => {
  const { kubectl, calls } = fakeKubectl(cluster);
  const warn = (text: string): never => expect.unreachable(text);
  const objects = await readRollout({ ...query, namespace: undefined, kubectl, warn }, signal);
  expect(objects).toMatchObject({ namespace: 'shop', kubeProxyReplacement: 'true', hasGate: true });
  expect(objects.services.map(({ metadata }) => metadata.name)).toEqual(['web']);
  expect(calls[0]).toBe('get deployments.apps/web --output=json');
  expect(calls).toContain('get pods --namespace=shop --selector=app=web --output=json');
  expect(objects.delay).toBeUndefined();
  expect(calls.every((call) => call.startsWith('get '))).toBe(true);
});

test('the delay of kube-proxy is read on at most five nodes, and a refusal is the reason why it is not known', async () => {
  const kubeProxy = { spec: { template: { spec: { containers: [{ image: 'kube-proxy:v1.36.2' }] } } } };
  const { kubectl, calls } = fakeKubectl({
    [`pods ${system}`]: Array.from({ length: 12 }, (_, index) => ({ metadata: { name: `kp${index}` } })),
    ...cluster,
    [`daemonsets.apps ${system}`]: [{ metadata: { name: 'kube-proxy' }, ...kubeProxy }],
  });
  const wanted = { ...query, kubectl, warn: () => undefined };
  const { delay } = await readRollout(wanted, signal);
  expect(delay).toEqual({ why: 'kubectl port-forward: forbidden' });
  const forwards = calls.filter((call) => call.startsWith('port-forward'));
  expect(forwards.map((call) => call.split(' ')[2])).toEqual(['pod/kp0', 'pod/kp3', 'pod/kp6', 'pod/kp9']);
  expect((await readRollout({ ...wanted, measuresDelay: false }, signal)).delay).toBeUndefined();
});

test('a user without rights in kube-system is warned', async () => {
  const forbidden = new HostError('kubectl.failed', 'kubectl get daemonsets.apps: forbidden');
  const { kubectl } = fakeKubectl({ ...cluster, [`daemonsets.apps ${system}`]: forbidden });
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const objects = await readRollout({ ...query, kubectl, warn }, signal);
  expect(objects).toMatchObject({ daemonSets: undefined, hasGate: undefined });
  expect(warnings).toEqual(['cannot look for the proxy: kubectl get daemonsets.apps: forbidden']);
});

test('a Deployment that no Service selects is an error', async () => {
  const { kubectl } = fakeKubectl({ ...cluster, services: [other, manual] });
  await expect(readRollout({ ...query, kubectl, warn: () => undefined }, signal)).rejects.toThrow(
    'no Service in shop selects the pods of deployment/web',
  );
});
