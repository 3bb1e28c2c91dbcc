import { expect, test } from 'vitest';
import { openGate } from './gate.ts';
import type { Kubectl } from './kubectl.ts';

const { signal } = new AbortController();
const place = { given: undefined, namespace: 'kube-system' };

const pod = (name: string, nodeName: string, more: object = {}) => ({
  metadata: { name, ...more },
  spec: { nodeName },
  status: { phase: 'Running' },
});

function fakeKubectl(items: readonly object[]) {
  const calls: string[] = [];
  const kubectl: Kubectl = {
    run: async () => JSON.stringify({ items }),
    start: async (args, pattern) => {
      calls.push(args.join(' '));
      const match = pattern.exec('Forwarding from 127.0.0.1:40000 -> 10247');
      if (match === null) throw new Error('the pattern does not fit');
      return { match, [Symbol.dispose]: () => undefined };
    },
    lines: () => {
      throw new Error('not used');
    },
  };
  return { kubectl, calls };
}

test.each([
  ['on another node than the one that is drained', [pod('a', 'n1'), pod('b', 'n2')], 'b'],
  ['that does not end', [pod('a', 'n2', { deletionTimestamp: 'now' }), pod('b', 'n3')], 'b'],
  ['of the node, if there is no other', [pod('a', 'n1')], 'a'],
] as const)('it takes a pod %s', async (_, pods, name) => {
  const { kubectl, calls } = fakeKubectl(pods);
  using gate = await openGate(place, { kubectl, avoid: 'n1' }, signal);
  expect(gate.url).toBe('http://127.0.0.1:40000');
  expect(calls).toEqual([`port-forward --namespace=kube-system pod/${name} :10247`]);
});

test('without a pod it says what to install', async () => {
  const { kubectl } = fakeKubectl([]);
  await expect(openGate(place, { kubectl, avoid: 'n1' }, signal)).rejects.toThrow(
    /no pod of it runs in kube-system; install it .*or name it with --gate/,
  );
});

test('a given one needs no kubectl', async () => {
  const { kubectl, calls } = fakeKubectl([]);
  using gate = await openGate({ ...place, given: 'http://10.0.0.1:10247/' }, { kubectl, avoid: 'n1' }, signal);
  expect([gate.url, calls]).toEqual(['http://10.0.0.1:10247', []]);
});
