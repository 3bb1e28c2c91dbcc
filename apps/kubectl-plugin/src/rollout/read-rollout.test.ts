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
    start: async () => {
      throw new Error('a check only reads');
    },
  };
  return { kubectl, calls };
}

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
  const objects = await readRollout({ deployment: 'web', namespace: undefined, kubectl, warn }, signal);
  expect(objects).toMatchObject({ namespace: 'shop', kubeProxyReplacement: 'true', hasGate: true });
  expect(objects.services.map(({ metadata }) => metadata.name)).toEqual(['web']);
  expect(calls[0]).toBe('get deployments.apps/web --output=json');
  expect(calls).toContain('get pods --namespace=shop --selector=app=web --output=json');
  expect(calls.every((call) => call.startsWith('get '))).toBe(true);
});

test('a user without rights in kube-system is warned', async () => {
  const forbidden = new HostError('kubectl.failed', 'kubectl get daemonsets.apps: forbidden');
  const { kubectl } = fakeKubectl({ ...cluster, [`daemonsets.apps ${system}`]: forbidden });
  const warnings: string[] = [];
  const query = { deployment: 'web', namespace: 'shop', kubectl, warn: (text: string) => void warnings.push(text) };
  const objects = await readRollout(query, signal);
  expect(objects).toMatchObject({ daemonSets: undefined, hasGate: undefined });
  expect(warnings).toEqual(['cannot look for the proxy: kubectl get daemonsets.apps: forbidden']);
});

test('a Deployment that no Service selects is an error', async () => {
  const { kubectl } = fakeKubectl({ ...cluster, services: [other, manual] });
  const query = { deployment: 'web', namespace: 'shop', kubectl, warn: () => undefined };
  await expect(readRollout(query, signal)).rejects.toThrow('no Service in shop selects the pods of deployment/web');
});
