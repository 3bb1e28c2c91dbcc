import { readFile } from 'node:fs/promises';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../privileged/agent-log.ts';
import { rulesetOf } from '../privileged/ruleset.ts';
import { type FaultLab, startFaultLab } from './faults/fault-lab.ts';

const { signal } = new AbortController();
const count = 1000;
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('fmany');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** Calls `work` for 0 to `count` - 1, some at a time. */
async function forEach(work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

const name = (index: number): string => `many-${index}`;

/** A Service with the same pod as endpoint as all others; its cluster IP. */
async function createService(index: number, pod: string): Promise<string> {
  const metadata = { name: name(index), namespace: 'default' };
  const { api } = lab.cluster;
  const service = { metadata, spec: { ports: [{ name: 'http', port: 80 }] } };
  const created = await api.create(apiResources.services, service, signal);
  const slice = {
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name(index) } },
    addressType: 'IPv4' as const,
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' as const }],
    endpoints: [{ addresses: [pod], nodeName: 'node2', conditions: { ready: true } }],
  };
  await api.create(apiResources.endpointSlices, slice, signal);
  return created.spec?.clusterIP ?? '';
}

/** Whether a cluster IP, asked from node1, is answered by pod `d`. */
async function answers(address: string): Promise<boolean> {
  const result = await lab.prober.probe({ protocol: 'http', address, port: 80, path: '/' });
  return result.status === 'answered' && result.by === 'd';
}

/**
 * The ruleset of a node, also without the sets in which rules themselves count refusals: a Service that was asked before its
 * slice had arrived has refused, and its count stays.
 */
async function ruleset(node: LabNode): Promise<string> {
  return (await rulesetOf(node)).replaceAll(/^\tset drops-.*\n(?:\t\t.*\n)*\t\}\n/gm, '');
}

async function rss(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

test('1,000 Services that come and go cost another one no request, and all of them work in between', async () => {
  const { clusterIp } = lab;
  await lab.setEndpoints('d');
  await lab.awaitAnswerOf('d');
  const pod = (await lab.cluster.api.get(apiResources.endpointSlices, { name: 'stable' }, signal)).endpoints?.[0];
  const before = await Promise.all(lab.nodes.map(ruleset));
  const addresses: string[] = [];
  await lab.underLoad(async () => {
    await forEach(async (index) => void (addresses[index] = await createService(index, pod?.addresses[0] ?? '')));
    const created = performance.now();
    await Promise.all(addresses.slice(-16).map((address) => until(() => answers(address))));
    expect(performance.now() - created, 'from the last write to the last answer').toBeLessThan(2000);
    for (let from = 0; from < count; from += 50) {
      const some = addresses.slice(from, from + 50);
      expect(await Promise.all(some.map(answers))).toEqual(some.map(() => true));
    }
    await forEach(async (index) => {
      await lab.cluster.api.delete(apiResources.services, { name: name(index) }, {}, signal);
      await lab.cluster.api.delete(apiResources.endpointSlices, { name: name(index) }, {}, signal);
    });
    const deleted = performance.now();
    for (const node of lab.nodes) await until(async () => !(await holdsAny(node, addresses)));
    expect(performance.now() - deleted, 'from the last deletion to the last rule').toBeLessThan(2000);
  });
  expect(addresses).not.toContain(clusterIp);
  expect(await answers(addresses[0] ?? '')).toBe(false);
  // Ids differ from one life of a Service to the next; what is left is as much as before.
  const after = await Promise.all(lab.nodes.map(ruleset));
  expect(after.map((text) => text.split('\n').length)).toEqual(before.map((text) => text.split('\n').length));
  for (const agent of lab.agents) expect(await rss(agent.pid)).toBeLessThan(120);
});

async function holdsAny(node: LabNode, addresses: readonly string[]): Promise<boolean> {
  const held = new Set((await ruleset(node)).match(/\d+\.\d+\.\d+\.\d+/g));
  return addresses.some((address) => held.has(address));
}
