import { millis, seconds, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('faway');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

async function createService(name: string): Promise<string> {
  const metadata = { name, namespace: 'default' };
  const created = await lab.cluster.api.create(
    apiResources.services,
    { metadata, spec: { ports: [{ port: 81 }] } },
    signal,
  );
  return created.spec?.clusterIP ?? '';
}

async function holds(node: LabNode, address: string): Promise<boolean> {
  return (await node.run('nft', ['list', 'ruleset'])).stdout.includes(`${address} `);
}

test('an API server that is away for 60 s, and has forgotten the past when it is back, costs no request; what changed meanwhile arrives', async () => {
  const { api, server } = lab.cluster;
  const doomed = await createService('doomed');
  for (const node of lab.nodes) await until(() => holds(node, doomed));
  await lab.underLoad(async () => {
    const outage = server.faults.stop(6443);
    await until(async () => (await readLog(lab.agents[0])).some(({ msg }) => msg.startsWith('lost the API server')));
    await lab.setEndpoints('a', 'd');
    await api.delete(apiResources.services, { name: 'doomed' }, {}, signal);
    const newborn = await createService('newborn');
    await systemClock.sleep(seconds(59), signal);
    for (const node of lab.nodes)
      expect([await holds(node, doomed), await holds(node, newborn)]).toEqual([true, false]);
    await lab.setEndpoints('d');
    server.store.compact();
    outage[Symbol.dispose]();
    expect(await lab.awaitAnswerOf('d')).toBeLessThan(33_000); // the longest back-off, and a little
    for (const node of lab.nodes) {
      await until(async () => (await holds(node, newborn)) && !(await holds(node, doomed)));
    }
    await systemClock.sleep(millis(500), signal);
  });
  for (const agent of lab.agents) {
    const log = await readLog(agent);
    expect(log.filter(({ level }) => level === 'warn').map(({ resource }) => resource)).toEqual(
      expect.arrayContaining(['Service', 'EndpointSlice', 'Node', 'ServiceCIDR']),
    );
    expect(log.filter(({ level }) => level === 'warn')).toHaveLength(4);
  }
});
