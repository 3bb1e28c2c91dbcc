import { millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabProcess,
  type LoadResult,
  type ProbeResult,
  type Prober,
  startLoad,
} from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createLoadBalancerLab, type LoadBalancerLab, localService, ports } from './load-balancer-lab.ts';
import { until } from '@switchyard/core/testing';

// One lab and one controller for the whole file: each test begins with both nodes healthy and zeroapp served.
const { signal } = new AbortController();
const interval = 200;
const fall = 3;
/** The machine is shared; a scheduling delay of this size happens. */
const slack = 500;
const address = '172.18.0.50';
const flags = [
  // One that is killed would keep its lease for 15 s.
  '--leader-elect=false',
  `--address=${address}`,
  '--address=fd00:172:18::50',
  `--health-check-interval=${interval}ms`,
  `--fall=${fall}`,
  '--rise=1',
];
let lbLab: LoadBalancerLab;
let controller: LabProcess;
let prober: Prober;

const probe = (port: number = ports.port): Promise<ProbeResult> =>
  prober.probe({ protocol: 'http', address, port, timeout: 1000 });
const answerers = async (count: number): Promise<ReadonlySet<string | undefined>> => {
  const by = new Set<string | undefined>();
  for (let n = 0; n < count; n++) {
    const result = await probe();
    by.add(result.status === 'answered' ? result.by : undefined);
  }
  return by;
};
const ingressOf = async (name: string): Promise<readonly unknown[]> => {
  const service = await lbLab.api.get(apiResources.services, { name }, signal);
  return (service.status as { loadBalancer?: { ingress?: unknown[] } } | undefined)?.loadBalancer?.ingress ?? [];
};
const awaitEvent = (kind: string, node: string, since: number): Promise<{ readonly time: number; reason: string }> =>
  until(`${kind} of ${node}`, () =>
    lbLab.events().find((event) => event.kind === kind && event.node === node && event.time >= since),
  );

beforeAll(async () => {
  lbLab = await createLoadBalancerLab('lbtest', signal);
  prober = await createProber(lbLab.lab.client, signal);
  controller = lbLab.startController(flags);
  await lbLab.api.create(apiResources.services, localService('zeroapp'), signal);
  await until('the status of zeroapp', async () => (await ingressOf('zeroapp')).length > 0);
});

beforeEach(async () => {
  for (const node of lbLab.nodes) await node.setHealth(200);
  // One good check each: before it, HAProxy takes a server for UP but drops it at the first failure.
  await systemClock.sleep(millis(2 * interval), signal);
});

afterAll(async () => {
  await prober?.[Symbol.asyncDispose]();
  await lbLab?.[Symbol.asyncDispose]();
});

test('a LoadBalancer Service gets the address with ipMode Proxy, and both nodes answer through it', async () => {
  expect(await ingressOf('zeroapp')).toEqual([
    { ip: address, ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] },
  ]);
  expect([...(await answerers(6))].sort()).toEqual(['node1', 'node2']);
});

describe('health checks', () => {
  test('take a failing node out after `fall` checks, with an event, and use it again after one good check', async () => {
    const [, node2] = lbLab.nodes;
    const failedAt = await node2!.setHealth(503);
    const down = await awaitEvent('server-down', 'node2', failedAt);
    // (fall - 1) intervals at least, fall intervals at most.
    expect(down.time - failedAt).toBeGreaterThan((fall - 1) * interval - 20);
    expect(down.time - failedAt).toBeLessThan(fall * interval + slack);
    expect(down.reason).toContain('503');
    expect([...(await answerers(6))]).toEqual(['node1']);
    const healedAt = await node2!.setHealth(200);
    const up = await awaitEvent('server-up', 'node2', healedAt);
    expect(up.time - healedAt).toBeLessThan(interval + slack);
    expect([...(await answerers(6))].sort()).toEqual(['node1', 'node2']);
  });
  test('with no node left, connections are closed at once', async () => {
    const since = systemClock.now();
    for (const node of lbLab.nodes) await node.setHealth(503);
    for (const { node } of lbLab.nodes) await awaitEvent('server-down', node.name, since);
    const result = await probe();
    expect(result.status).not.toBe('answered');
    expect(result.status).not.toBe('timeout');
    const healed = systemClock.now();
    for (const node of lbLab.nodes) await node.setHealth(200);
    for (const { node } of lbLab.nodes) await awaitEvent('server-up', node.name, healed);
  });
});

describe('reload', () => {
  test('loses no request under load, keeps long connections, and keeps DOWN nodes DOWN', async () => {
    const [, node2] = lbLab.nodes;
    const since = await node2!.setHealth(503);
    await awaitEvent('server-down', 'node2', since);
    const slow = prober.probe({ protocol: 'http', address, port: ports.port, path: '/slow', timeout: 5000 });
    await using load = await startLoad(lbLab.lab.client, {
      url: `http://${address}:${ports.port}/`,
      rate: 200,
      duration: millis(2500),
      timeout: millis(1000),
    });
    const reloadsBefore = reloads();
    for (let n = 1; n <= 5; n++) {
      const changes = { healthCheckNodePort: 32090 + n, ports: [{ port: 8080 + n, nodePort: 30090 + n }] };
      await lbLab.api.create(apiResources.services, localService(`other${n}`, changes as never), signal);
      await until(`the status of other${n}`, async () => (await ingressOf(`other${n}`)).length > 0);
    }
    const results = await load.finished;
    expect(reloads() - reloadsBefore).toBe(5);
    expect(results.length).toBeGreaterThan(400);
    expect(outcomes(results)).toEqual({ answered: results.length });
    expect([...new Set(results.map(({ answeredBy }) => answeredBy))]).toEqual(['node1']);
    expect((await slow).status).toBe('answered');
    // Nothing was forgotten, so nothing is said again.
    const zeroapp = lbLab.events().filter(({ service, time }) => service === 'default/zeroapp' && time > since);
    expect(zeroapp.map(({ kind, node }) => `${node} ${kind}`)).toEqual(['node2 server-down']);
    const healed = await node2!.setHealth(200);
    await awaitEvent('server-up', 'node2', healed);
    for (let n = 1; n <= 5; n++) await lbLab.api.delete(apiResources.services, { name: `other${n}` }, {}, signal);
    await until('port 8081 to close', async () => (await probe(8081)).status === 'refused');
  });
});

test('a Service that stops being a LoadBalancer is no longer listened for, and its status is cleared', async () => {
  await lbLab.api.create(
    apiResources.services,
    localService('mixed', {
      healthCheckNodePort: 32099,
      ports: [
        { name: 'tcp', protocol: 'TCP', port: 8090, nodePort: 30099 },
        { name: 'udp', protocol: 'UDP', port: 8090, nodePort: 30099 },
      ],
    } as never),
    signal,
  );
  const conditions = await until('a condition', async () => {
    const { status } = await lbLab.api.get(apiResources.services, { name: 'mixed' }, signal);
    return (status as { conditions?: readonly unknown[] })?.conditions;
  });
  expect(conditions).toMatchObject([{ type: 'lb.switchyard.dev/Ready', status: 'True', reason: 'Serving' }]);
  await lbLab.api.patch(
    apiResources.services,
    { name: 'mixed' },
    { kind: 'merge', body: { spec: { type: 'ClusterIP', externalTrafficPolicy: null, healthCheckNodePort: null } } },
    signal,
  );
  await until('the status of mixed to be empty', async () => {
    const { status } = await lbLab.api.get(apiResources.services, { name: 'mixed' }, signal);
    const { conditions: left, loadBalancer } = (status ?? {}) as { conditions?: unknown[]; loadBalancer?: object };
    return (left ?? []).length === 0 && Object.keys(loadBalancer ?? {}).length === 0;
  });
  await until('port 8090 to close', async () => (await probe(8090)).status === 'refused');
});

describe('HAProxy and the controller', () => {
  const haproxyPid = (): number => {
    const started = lbLab.logLines(controller).filter(({ msg }) => msg === 'HAProxy started');
    return Number(started.at(-1)?.['pid']);
  };
  test('a HAProxy that dies is started again', async () => {
    const before = haproxyPid();
    process.kill(before, 'SIGKILL');
    await until('another HAProxy', () => haproxyPid() !== before);
    await until('an answer', async () => (await probe()).status === 'answered');
  });
  test('a killed controller leaves HAProxy at work, and the next one takes it over without losing a request', async () => {
    await using load = await startLoad(lbLab.lab.client, {
      url: `http://${address}:${ports.port}/`,
      rate: 200,
      duration: millis(3000),
      timeout: millis(1000),
    });
    const before = haproxyPid();
    controller.child.kill('SIGKILL');
    await controller.ended;
    controller = lbLab.startController(flags);
    await until('HAProxy to be taken over', () => haproxyPid() > 0);
    const results = await load.finished;
    expect(outcomes(results)).toEqual({ answered: results.length });
    expect(lbLab.logLines(controller).find(({ msg }) => msg === 'HAProxy started')).toMatchObject({
      predecessor: before,
    });
    await until('the old HAProxy to end', () => !isAlive(before));
  });
  test('SIGTERM stops both', async () => {
    const pid = haproxyPid();
    controller.child.kill('SIGTERM');
    expect(await controller.ended).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expect((await probe()).status).toBe('refused');
  });
});

function outcomes(results: readonly LoadResult[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...Map.groupBy(results, ({ outcome }) => outcome)].map(([outcome, those]) => [outcome, those.length]),
  );
}

function reloads(): number {
  return lbLab.logLines(controller).filter(({ msg }) => msg === 'HAProxy took a new configuration').length;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
