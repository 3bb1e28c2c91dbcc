import { HostError } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type AgentQuery, findAgents } from './agents.ts';
import type { Kubectl } from './kubectl.ts';

const { signal } = new AbortController();
const query: AgentQuery = { given: [], namespace: 'kube-system', selector: 'k8s-app=kube-proxy', port: 10_249 };
const pod = (name: string, nodeName: string, phase = 'Running') => ({
  metadata: { name },
  spec: { nodeName },
  status: { phase },
});

/** A kubectl with these pods, which forwards to those that are not in `broken`. */
function fakeKubectl(pods: readonly object[], broken: readonly string[] = []) {
  const calls: string[] = [];
  let open = 0;
  const kubectl: Kubectl = {
    run: async (args) => {
      calls.push(args.join(' '));
      return JSON.stringify({ items: pods });
    },
    lines: async function* () {
      yield* [];
      throw new Error('not used');
    },
    start: async (args, pattern) => {
      calls.push(args.join(' '));
      const name = args.find((arg) => arg.startsWith('pod/')) ?? '';
      if (broken.includes(name)) throw new HostError('kubectl.failed', `kubectl ${name}: forbidden`);
      open++;
      const match = pattern.exec(`Forwarding from 127.0.0.1:4${open}000 -> 10249\n`);
      if (match === null) throw new Error('the pattern does not fit');
      return { match, [Symbol.dispose]: () => void open-- };
    },
  };
  return { kubectl, calls, open: () => open };
}

test('forwards a port to each running pod, in the order of nodes, and ends it', async () => {
  const { kubectl, calls, open } = fakeKubectl([pod('b', 'node2'), pod('a', 'node1'), pod('c', 'node3', 'Pending')]);
  {
    using found = await findAgents(query, kubectl, signal);
    expect(found.agents.map(({ node }) => node)).toEqual(['node1', 'node2']);
    expect(found.agents.every(({ url }) => /^http:\/\/127\.0\.0\.1:4[12]000$/.test(url))).toBe(true);
    expect(open()).toBe(2);
  }
  expect(open()).toBe(0);
  expect(calls).toContain('get pods --namespace=kube-system --selector=k8s-app=kube-proxy --output=json');
  expect(calls).toContain('port-forward --namespace=kube-system pod/a :10249');
});

test('without a selector it takes the pods of its manifests, else those of kube-proxy, with their ports', async () => {
  const labels = { 'app.kubernetes.io/component': 'observer' };
  const observer = { ...pod('o', 'node1'), metadata: { name: 'o', labels } };
  const own = fakeKubectl([observer]);
  using _ = await findAgents({ ...query, selector: undefined, port: undefined }, own.kubectl, signal);
  expect(own.calls).toEqual([
    'get pods --namespace=kube-system --selector=app.kubernetes.io/name=switchyard,app.kubernetes.io/component!=drain-gate --output=json',
    'port-forward --namespace=kube-system pod/o :10239',
  ]);
  const none = fakeKubectl([]);
  await expect(findAgents({ ...query, selector: undefined }, none.kubectl, signal)).rejects.toThrow(
    'selector app.kubernetes.io/name=switchyard,app.kubernetes.io/component!=drain-gate or k8s-app=kube-proxy',
  );
  expect(none.calls).toHaveLength(2);
});

test('names pods that cannot be reached, and goes on with the others', async () => {
  const { kubectl } = fakeKubectl([pod('a', 'node1'), pod('b', 'node2')], ['pod/b']);
  using found = await findAgents(query, kubectl, signal);
  expect(found.agents.map(({ node }) => node)).toEqual(['node1']);
  expect(found.problems).toEqual(['node2: kubectl pod/b: forbidden']);
});

test('selects nodes', async () => {
  const { kubectl } = fakeKubectl([pod('a', 'node1'), pod('b', 'node2')]);
  using found = await findAgents({ ...query, nodes: ['node2'] }, kubectl, signal);
  expect(found.agents.map(({ node }) => node)).toEqual(['node2']);
});

test('fails if there is no pod, or if none can be reached', async () => {
  await expect(findAgents(query, fakeKubectl([]).kubectl, signal)).rejects.toThrow(
    'no running pod of an agent (namespace kube-system, selector k8s-app=kube-proxy); set --agent-namespace or --selector',
  );
  const { kubectl } = fakeKubectl([pod('a', 'node1')], ['pod/a']);
  await expect(findAgents(query, kubectl, signal)).rejects.toThrow(
    'no agent can be reached: node1: kubectl pod/a: forbidden',
  );
});

test('given agents need no kubectl', async () => {
  const { kubectl, calls } = fakeKubectl([]);
  using found = await findAgents({ ...query, given: ['n1=http://10.0.0.1:10249/'] }, kubectl, signal);
  expect(found.agents).toEqual([{ node: 'n1', url: 'http://10.0.0.1:10249' }]);
  expect(calls).toEqual([]);
});
