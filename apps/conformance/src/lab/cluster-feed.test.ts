import { ipFamilies, parseCidr } from '@switchyard/core';
import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import { type ApiServer, createApiClient, startApiServer } from '@switchyard/lab';
import { allScenarios, firstState, nextState, type Scenario } from '@switchyard/scenarios';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ScenarioMoment } from '../model/test-environment.ts';
import { ClusterFeed } from './cluster-feed.ts';

const { signal } = new AbortController();
const scenarios = allScenarios();
let server: ApiServer;
let api: ObjectClient;
let feed: ClusterFeed;

beforeEach(async () => {
  server = await startApiServer({ serviceCidrs: ['10.96.0.0/16', 'fd00:10:96::/112'].map(parseCidr) });
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = createApiClient({ url });
  feed = new ClusterFeed(server, ipFamilies);
});

afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

function scenario(id: string, family = 'IPv4'): Scenario {
  const found = scenarios.find((one) => one.id === id && one.ipFamily === family);
  if (found === undefined) throw new TypeError(`no scenario ${id}`);
  return found;
}

const first = (one: Scenario): ScenarioMoment => ({ scenario: one, state: firstState(one) });

async function services(): Promise<readonly string[]> {
  const { items } = await api.list(apiResources.services, {}, signal);
  return items.map(({ metadata, spec }) => `${metadata.namespace}/${metadata.name} ${spec?.clusterIP}`);
}

describe('ClusterFeed', () => {
  test('holds exactly what was put last', async () => {
    const refusals = await feed.put([first(scenario('cluster-ip'))], signal);
    expect(await services()).toEqual(['shop/cart 10.96.0.10', 'shop/empty 10.96.0.11']);
    expect(refusals).toEqual([]);
    await feed.put([first(scenario('cluster-ip', 'IPv6'))], signal);
    expect(await services()).toEqual(['shop/cart fd00:10:96::10', 'shop/empty fd00:10:96::11']);
    await feed.put([], signal);
    expect(await services()).toEqual([]);
    const { items } = await api.list(apiResources.endpointSlices, {}, signal);
    expect(items).toEqual([]);
  });

  test('writes only what differs', async () => {
    const one = scenario('etp-local');
    await feed.put([first(one)], signal);
    const before = server.store.resourceVersion;
    await feed.put([first(one)], signal);
    expect(server.store.resourceVersion).toBe(before);
    const step = one.steps.find(({ kind }) => kind === 'removeEndpoint' || kind === 'putEndpoint');
    expect(step).toBeDefined();
    await feed.put([{ scenario: one, state: nextState(firstState(one), step!) }], signal);
    expect(server.store.resourceVersion).toBeGreaterThan(before);
    expect(server.store.resourceVersion).toBeLessThanOrEqual(before + 2);
  });

  test('a put after one that was cut short finds what that had removed', async () => {
    const one = scenario('cluster-ip');
    await feed.put([first(one)], signal);
    const elsewhere = { ...scenario('etp-local'), zone: 'zone-z' };
    const stop = AbortSignal.abort(new Error('enough'));
    await expect(feed.put([first(elsewhere)], stop)).rejects.toThrow('enough');
    await feed.put([first(one)], signal);
    expect(await services()).toEqual(['shop/cart 10.96.0.10', 'shop/empty 10.96.0.11']);
  });

  test('objects that the API server would refuse are stored, and reported', async () => {
    const refusals = await feed.put([first(scenario('etp-leftover'))], signal);
    const [leftover] = (await api.list(apiResources.services, {}, signal)).items;
    expect(leftover?.spec).toMatchObject({ type: 'ClusterIP', externalTrafficPolicy: 'Local' });
    expect(refusals).toEqual(['Service cart: the API server drops some fields']);
    const one = scenario('etp-local');
    const [service] = one.services;
    const far = { ...one, services: [{ ...service!, clusterIP: '10.97.0.10' as never }] };
    const later = await feed.put([first(far)], signal);
    expect(later.join()).toContain('the provided network does not match the current range');
    expect(await services()).toEqual(['shop/cart 10.97.0.10']);
  });

  test('two Services of different families, each with a load balancer, get health check ports of their own', async () => {
    const ports = async (): Promise<readonly unknown[]> => {
      const { items } = await api.list(apiResources.services, {}, signal);
      return items.map(({ spec }) => spec?.healthCheckNodePort).filter((port) => port !== undefined);
    };
    const [one, other] = ['a', 'b'].map((namespace) => {
      const base = scenario('etp-local');
      const [service] = base.services;
      const bare = { ...service!, name: `${namespace}/cart`, healthCheckNodePort: undefined };
      const number = namespace === 'a' ? 10 : 20;
      const ports = bare.ports.map((port) => ({ ...port, nodePort: undefined }));
      const clusterIP = `10.96.1.${number}` as typeof bare.clusterIP;
      return { ...base, services: [{ ...bare, ports, clusterIP }], endpoints: [] };
    });
    const refusals = await feed.put([first(one!), first(other!)], signal);
    expect(await ports()).toEqual([32_200, 32_201]);
    expect(refusals).toEqual([]);
    await feed.put([], signal);
    await feed.put([first(other!)], signal);
    expect(await ports(), 'the same as before').toEqual([32_201]);
  });

  test('Nodes have all families, independent of the scenario, and the address that a step gave', async () => {
    const one = scenario('cluster-ip', 'IPv6');
    const step = { kind: 'nodeAddress', address: 'fd00:172:18::200', line: 1 } as never;
    await feed.put([{ scenario: one, state: nextState(firstState(one), step) }], signal);
    const { items } = await api.list(apiResources.nodes, {}, signal);
    expect(items.map(({ status }) => status?.addresses?.map(({ address }) => address))).toEqual([
      ['172.18.0.11', 'fd00:172:18::200'],
      ['172.18.0.12', 'fd00:172:18::12'],
    ]);
  });

  test('cases that name the same objects cannot be put together', async () => {
    const both = [first(scenario('cluster-ip')), first(scenario('etp-local'))];
    await expect(feed.put(both, signal)).rejects.toThrow('name the same objects');
  });

  test('every state of every scenario can be put, one after another', { timeout: 60_000 }, async () => {
    for (const one of scenarios) {
      let state = firstState(one);
      await feed.put([{ scenario: one, state }], signal);
      for (const step of one.steps) {
        const next = nextState(state, step);
        if (next !== state) await feed.put([{ scenario: one, state: next }], signal);
        state = next;
      }
      const held = (await services()).map((text) => text.split(' ')[0]).sort();
      expect(held, one.id).toEqual([...state.services.keys()].sort());
    }
  });
});
