import type { ObjectClient, Pod } from '@switchyard/core/kubernetes';
import { describe, expect, test } from 'vitest';
import { LeapingClock } from '../testing/leaping-clock.ts';
import { openClusterProxy, proxyPod } from './cluster-proxy.ts';

const signal = new AbortController().signal;

function pod(name: string, labels: Readonly<Record<string, string>>, owner = 'DaemonSet'): Pod {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: owner, name: 'owner', uid: 'o' }];
  return {
    metadata: { name, uid: name, labels: { ...labels }, ownerReferences },
    status: { containerStatuses: [{ name: 'c', image: '', imageID: '', ready: true, restartCount: 0 }] },
  } as Pod;
}

const kubeProxy = { 'k8s-app': 'kube-proxy' };

test.each([
  ['kube-proxy', pod('a', kubeProxy), 'a'],
  ['Switchyard', pod('b', { 'app.kubernetes.io/component': 'node-agent' }), 'b'],
  ['the pod of another program', pod('c', { 'k8s-app': 'kube-dns' }), undefined],
  ['a pod that no DaemonSet starts again', pod('d', kubeProxy, 'Node'), undefined],
])('%s on a node', (_, one, expected) => {
  expect(proxyPod([one])?.metadata.name).toBe(expected);
});

/** An API server whose DaemonSet makes a pod anew some looks after its end. */
class FakeApi {
  readonly deleted: (number | undefined)[] = [];
  #looks = 0;
  #made = 1;

  async list(): Promise<{ readonly items: readonly Pod[] }> {
    this.#looks += 1;
    const isAway = this.deleted.length === this.#made && this.#looks < 5;
    if (this.deleted.length === this.#made && !isAway) this.#made += 1;
    return { items: isAway ? [] : [pod(`proxy-${this.#made}`, kubeProxy)] };
  }

  async delete(_resource: unknown, _ref: unknown, { gracePeriodSeconds }: { gracePeriodSeconds?: number }) {
    this.deleted.push(gracePeriodSeconds);
    this.#looks = 0;
  }
}

describe('the proxy of a cluster', () => {
  const open = (fake: Partial<FakeApi>) => {
    const api = fake as unknown as ObjectClient;
    const place = { api, clock: new LeapingClock(), node: 'node1', settled: () => Promise.resolve() };
    return openClusterProxy(place, signal);
  };

  test('a killed one gets the shortest grace period, a stopped one its own; each start waits for the next pod', async () => {
    const fake = new FakeApi();
    const proxy = await open(fake);
    await proxy.kill();
    await proxy.start();
    await proxy.stop();
    await proxy.start();
    expect(fake.deleted).toEqual([1, undefined]);
  });

  test('a node without one is refused', async () => {
    await expect(open({ list: async () => ({ items: [] }) })).rejects.toThrow(/node1 has no pod of kube-proxy/);
  });

  test('one that does not come back is an error of the cluster', async () => {
    const fake = new FakeApi();
    const proxy = await open(fake);
    fake.list = async () => ({ items: [] });
    await expect(proxy.start()).rejects.toThrow(/waited 60 s for the DaemonSet/);
  });
});
