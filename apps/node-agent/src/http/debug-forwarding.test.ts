import { type Failure } from '@switchyard/core/engine';
import { type HttpStream } from '@switchyard/core/health';
import { millis, type ServicePortKey } from '@switchyard/core';
import { getRequest, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { forwardingAnswer } from './debug-forwarding.ts';
import { ask, debugHandler, debugState, now, tableOfFamily } from './testing/debug-bench.ts';

interface Family {
  readonly services: readonly { readonly key: string }[];
  readonly healthChecks: readonly unknown[];
}

async function forwarding(query = '', options: Parameters<typeof debugState>[0] = {}) {
  const answer = await ask(debugHandler(debugState(options)), `/debug/forwarding${query}`);
  return { ...answer, families: (JSON.parse(answer.body) as { families: readonly Family[] }).families };
}

const cart = 'shop/cart:http/TCP' as ServicePortKey;
const failure: Failure = { text: 'the kernel says no', since: millis(now - 60_000) };

describe('/debug/forwarding', () => {
  test('shows the table and the state of each family', async () => {
    const { status, headers, body } = await forwarding();
    expect([status, headers['Content-Type']]).toEqual([200, 'application/json']);
    expect(JSON.parse(body)).toMatchObject({
      nodeName: 'n1',
      time: '2026-11-21T10:00:00.000Z',
      families: [
        {
          ipFamily: 'IPv4',
          generation: 1,
          lastApplied: '2026-11-21T10:00:00.000Z',
          table: {
            podDetector: { kind: 'cidr', cidr: '10.244.0.0/16' },
            nodePortCidrs: ['192.0.2.1/32'],
            serviceCidrs: ['10.96.0.0/16'],
          },
          healthChecks: [{ service: 'shop/cart', port: 30001, localReadyEndpoints: 1 }],
        },
        { ipFamily: 'IPv6', table: { podDetector: { kind: 'none' } } },
      ],
    });
  });

  test('shows each Service port: frontends with decisions, endpoints with their policies, status', async () => {
    const { families } = await forwarding();
    expect(families[0]?.services[1]).toMatchObject({
      key: cart,
      status: { kind: 'applied' },
      protocol: 'TCP',
      policies: { internal: 'Cluster', external: 'Local' },
      topology: 'none',
      sessionAffinity: { kind: 'clientIP', timeoutSeconds: 600 },
      frontends: [
        { kind: 'clusterIP', address: '10.96.0.10', port: 80 },
        { kind: 'loadBalancerIP', decisions: { outside: { kind: 'forward', to: 'Local', masquerade: false } } },
        { kind: 'nodePort', address: 'anyNodePortAddress', port: 30080 },
      ],
      endpoints: [
        { address: '10.244.1.5', port: 8080, isLocal: true, ready: true, usedBy: ['Cluster', 'Local'] },
        { address: '10.244.2.5', nodeName: 'n2', usedBy: ['Cluster'] },
        { address: '10.244.2.6', ready: false, usedBy: [] },
      ],
    });
  });

  test('is in key order, one Service port per line, and equal for equal tables', async () => {
    const { families, body } = await forwarding();
    const keys = families.map((family) => family.services.map(({ key }) => key));
    expect(keys[0]).toEqual(['shop/cart-api:/TCP', cart, 'shop/empty:/TCP']);
    expect(body.split('\n').filter((line) => line.startsWith('{"key":'))).toHaveLength(keys.flat().length);
    expect((await forwarding()).body).toBe(body);
  });

  test.each([
    ['a Service', 'shop/cart', [[cart], [cart]]],
    ['one of its ports', cart, [[cart], [cart]]],
    ['a Service of one family', 'shop/empty', [['shop/empty:/TCP'], []]],
    ['a port without a name', 'shop/cart-api:/TCP', [['shop/cart-api:/TCP'], []]],
  ])('selects %s', async (...row) => {
    const [, service, expected] = row;
    const { families } = await forwarding(`?service=${service}`);
    expect(families.map((family) => family.services.map(({ key }) => key))).toEqual(expected);
    expect(families[0]?.healthChecks).toHaveLength(service === 'shop/cart' ? 1 : 0);
  });

  test.each(['shop/none', 'shop/cart:http/UDP', 'shop/car'])('says 404 for %s, which is nowhere', async (service) => {
    const answer = await ask(debugHandler(debugState()), `/debug/forwarding?service=${service}`);
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({ error: expect.stringContaining(service) as string });
  });

  test.each([
    '?service=',
    '?service=cart',
    '?service=a/b/c',
    '?service=a/b:c',
    '?service=a/b&service=a/c',
    '?name=a/b',
  ])('says how to ask instead of %s', async (query) => {
    const answer = await ask(debugHandler(debugState()), `/debug/forwarding${query}`);
    expect(answer).toMatchObject({ status: 400, body: expect.stringMatching(/^usage: /) as string });
  });

  test('says what failed, with text and since when, also of a Service that is no longer in the table', async () => {
    const failed = new Map([
      [cart, failure],
      ['shop/gone:/TCP' as ServicePortKey, failure],
    ]);
    const { families } = await forwarding('', { failed });
    const status = { kind: 'failed', text: 'the kernel says no', since: '2026-11-21T09:59:00.000Z' };
    expect(families[0]?.services[1]).toMatchObject({ key: cart, status });
    expect(families[0]?.services.at(-1)).toEqual({ key: 'shop/gone:/TCP', status });
    expect(families[1]?.services[0]).toMatchObject({ key: cart, status: { kind: 'applied' } });
    expect((await forwarding('?service=shop/gone', { failed })).families[0]?.services).toHaveLength(1);
  });

  test('says what a family waits for, and why its last apply failed', async () => {
    const { families } = await forwarding('', { family: { pendingFor: millis(1234.5), failure } });
    expect(families[0]).toMatchObject({
      pendingMs: 1235,
      failure: { text: 'the kernel says no', since: '2026-11-21T09:59:00.000Z' },
    });
  });

  test('is valid before anything was applied', async () => {
    const { families } = await forwarding('', { tables: new Map() });
    expect(families).toEqual([
      { ipFamily: 'IPv4', lastApplied: expect.any(String) as string, healthChecks: [], services: [] },
      { ipFamily: 'IPv6', lastApplied: expect.any(String) as string, healthChecks: [], services: [] },
    ]);
  });

  test('shows the state at the time of the request, also if it changes during the reply', async () => {
    const tables = new Map([['IPv4', tableOfFamily('IPv4')]] as const);
    const reply = forwardingAnswer(debugState({ tables }), getRequest('/debug/forwarding')) as HttpStream;
    tables.clear();
    let body = '';
    for await (const piece of reply.pieces) body += piece;
    expect(body).toContain(cart);
  });

  test('a piece of the answer is small, however many endpoints Services have', async () => {
    const keys = Array.from({ length: 8 }, (_, index) => `shop/large-${index}`);
    const endpoints = Array.from({ length: 400 }, (_, index) => `10.244.${index >> 8}.${index & 255}`);
    const table = tableOf(
      {
        services: keys.map((key, index) => service(key, { clusterIps: [`10.96.0.${index + 1}`] })),
        slices: keys.map((key) => slice(key, { endpoints })),
      },
      tableOptions(),
    );
    const state = debugState({ tables: new Map([['IPv4', table]]) });
    const reply = forwardingAnswer(state, getRequest('/debug/forwarding')) as HttpStream;
    const counts: number[] = [];
    for await (const piece of reply.pieces) counts.push(String(piece).split('"address":"10.244.').length - 1);
    expect(counts.filter((count) => count > 0)).toEqual([800, 800, 800, 800]);
  });
});
