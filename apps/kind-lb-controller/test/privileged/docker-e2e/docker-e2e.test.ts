import { apiResources } from '@switchyard/core/kubernetes';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LabProcess, tryKill } from '@switchyard/lab';
import { type E2eEnvironment, logLines, nodePorts, createE2eEnvironment } from './e2e-environment.ts';
import {
  addressesIn,
  addressOf,
  createServed,
  deleteService,
  eventsOf,
  localService,
  patch,
  plainService,
  read,
  removeService,
  readiness,
} from './services.ts';

const { signal } = new AbortController();
const soon = { interval: 100 };
let environment: E2eEnvironment;
let controller: LabProcess;

beforeAll(async () => {
  environment = await createE2eEnvironment('dockere', signal);
});

afterAll(() => environment?.[Symbol.asyncDispose]());

/** Which nodes answer four requests, or how they ended. */
async function answers(address: string, port = 80, protocol: 'http' | 'udp' = 'http'): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const result = await environment.client.probe({ protocol, address, port, timeout: 1000 });
    seen.push(result.status === 'answered' ? (result.node ?? '') : result.status);
  }
  return [...new Set(seen)].sort();
}

const bothNodes = ['node1', 'node2'];

describe('a Service is pending', () => {
  test.each([
    ['the image is missing', ['--image=switchyard/nothing:1'], 'switchyard/nothing:1'],
    ['the network is missing', ['--network=nowhere'], 'nowhere'],
  ])('because %s, and Events and its condition say what to do', async (_, flags, named) => {
    const [{ api }] = environment.clusters;
    const name = `pending-${named.replaceAll(/\W/g, '')}`;
    await api.create(apiResources.services, plainService(name), signal);
    await using started = disposable(environment.startController(flags));
    await expect.poll(() => readiness(api, name), soon).toContain(named);
    expect(await readiness(api, name)).toMatch(/^False /);
    const failure = 'Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer';
    const events = async (): Promise<string> => (await eventsOf(api, name)).join('\n');
    // Events are sent beside the status, not before it.
    await expect.poll(events, soon).toContain(failure);
    expect(await events()).toContain(named);
    expect(addressesIn(await read(api, name))).toEqual([]);
    expect(started.program.child.exitCode).toBeNull();
  });

  test('no longer when the program runs as it should: these are served, and deleted without a trace', async () => {
    const [{ api }] = environment.clusters;
    controller = environment.startController();
    for (const name of ['pending-switchyardnothing1', 'pending-nowhere']) {
      await addressOf(api, name);
      await deleteService(api, name);
    }
    expect(await environment.all()).toEqual([]);
  });
});

describe('two clusters that were found by their containers', () => {
  test('have a load balancer each for Services of the same name, with addresses of their own', async () => {
    const addresses = await Promise.all(environment.clusters.map(({ api }) => createServed(api, localService('web'))));
    expect(new Set(addresses).size).toBe(2);
    for (const address of addresses) {
      expect(address).toMatch(/^172\.18\.255\.\d+$/);
      await expect.poll(() => answers(address), soon).toEqual(bothNodes);
    }
    expect(await environment.running()).toHaveLength(2);
    const [{ api }] = environment.clusters;
    expect(await readiness(api, 'web')).toMatch(
      /^True Serving: cloud-provider-kind: HTTP GET :32080\/healthz every 5 s, out after 3 failures .*container switchyard-lb-kind-/,
    );
    const events = await eventsOf(api, 'web');
    expect(events.filter((line) => line.startsWith('Normal'))).toEqual([
      'Normal EnsuringLoadBalancer: Ensuring load balancer',
      'Normal EnsuredLoadBalancer: Ensured load balancer',
    ]);
  });
});

describe('one Service', () => {
  const http = { name: 'http', port: 80, targetPort: 8080, nodePort: nodePorts.http };
  const dns = { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53, nodePort: nodePorts.udp };

  test('gets a UDP port beside its TCP port, and another TCP port, at the same address', async () => {
    const [{ api }] = environment.clusters;
    const address = await addressOf(api, 'web');
    await patch(api, 'web', { spec: { ports: [http, dns] } });
    await expect.poll(() => answers(address, 53, 'udp'), soon).toEqual(bothNodes);
    await patch(api, 'web', { spec: { ports: [{ ...http, port: 8081 }, dns] } });
    await expect.poll(() => answers(address, 8081), soon).toEqual(bothNodes);
    await expect.poll(() => answers(address, 80), soon).toEqual(['refused']);
    expect(addressesIn(await read(api, 'web'))).toEqual([address]);
    await patch(api, 'web', { spec: { ports: [http, dns] } });
    await expect.poll(() => answers(address), soon).toEqual(bothNodes);
  });

  test('keeps clients out who are in none of its source ranges, for TCP and UDP', async () => {
    const [{ api }] = environment.clusters;
    const address = await addressOf(api, 'web');
    await patch(api, 'web', { spec: { loadBalancerSourceRanges: ['172.18.0.0/26'] } });
    await expect.poll(() => answers(address, 53, 'udp'), soon).toEqual(['timeout']);
    const refused = await answers(address);
    expect(bothNodes).not.toContain(refused[0]);
    await patch(api, 'web', { spec: { loadBalancerSourceRanges: ['172.18.0.64/26'] } });
    await expect.poll(() => answers(address, 53, 'udp'), soon).toEqual(bothNodes);
    await expect.poll(() => answers(address), soon).toEqual(bothNodes);
    await patch(api, 'web', { spec: { loadBalancerSourceRanges: null } });
  });

  test('tells by an Event which nodes are left out, and why', async () => {
    const [{ api }] = environment.clusters;
    const address = await addressOf(api, 'web');
    const label = 'node.kubernetes.io/exclude-from-external-load-balancers';
    const setLabel = (value: string | null): Promise<unknown> =>
      api.patch(
        apiResources.nodes,
        { name: 'node1' },
        { kind: 'merge', body: { metadata: { labels: { [label]: value } } } },
        signal,
      );
    await setLabel('');
    await expect
      .poll(async () => (await eventsOf(api, 'web')).join('\n'), soon)
      .toMatch(/Normal LoadBalancerNodesExcluded: These nodes get no connections from the load balancer: .*node1/);
    await expect.poll(() => answers(address), soon).toEqual(['node2']);
    await setLabel(null);
    await expect.poll(() => answers(address), soon).toEqual(bothNodes);
  });

  test('that is wrong says so and delays no other; what it was runs on', async () => {
    const [{ api }] = environment.clusters;
    const address = await addressOf(api, 'web');
    const interval = 'lb.switchyard.dev/health-check-interval';
    await patch(api, 'web', { metadata: { annotations: { [interval]: 'soon' } } });
    await expect
      .poll(() => readiness(api, 'web'), soon)
      .toMatch(new RegExp(`^False InvalidConfiguration: .*${interval}.*soon`));
    // Events are sent beside the status, not before it.
    await expect
      .poll(async () => (await eventsOf(api, 'web')).join('\n'), soon)
      .toMatch(new RegExp(`Warning InvalidConfiguration: .*${interval}`));
    const wrong = plainService('wrong');
    const annotations = { 'lb.switchyard.dev/path': 'sideways' };
    await api.create(apiResources.services, { ...wrong, metadata: { ...wrong.metadata, annotations } }, signal);
    await expect.poll(() => readiness(api, 'wrong'), soon).toMatch(/^False InvalidConfiguration: .*sideways/);
    expect(addressesIn(await read(api, 'wrong'))).toEqual([]);
    expect(await createServed(api, plainService('other'))).toMatch(/^172\.18\.255\./);
    expect(await answers(address)).toEqual(bothNodes);
    await patch(api, 'web', { metadata: { annotations: { [interval]: '1s' } } });
    await expect
      .poll(() => readiness(api, 'web'), soon)
      .toMatch(/^True Serving: cloud-provider-kind, changed: .*every 1 s/);
    for (const name of ['wrong', 'other']) await deleteService(api, name);
    expect(controller.child.exitCode).toBeNull();
  });
});

describe('a load balancer keeps its address and comes back', () => {
  const containerOfWeb = async (): Promise<string> =>
    environment.docker('ps', '--filter', 'label=dev.switchyard.lb.cluster=kind', '--format', '{{.Names}}');

  test.each([
    [
      'HAProxy is killed',
      async (): Promise<void> => {
        for (const pid of await environment.engine.pidsOf(await containerOfWeb())) tryKill(pid); // the first takes others along
      },
    ],
    [
      'its container is removed by hand',
      async (): Promise<void> => void (await environment.docker('rm', '--force', await containerOfWeb())),
    ],
    ['Docker is restarted', (): Promise<void> => environment.engine.restart({ isKilled: false }, signal)],
  ])('when %s', async (_, disturb) => {
    const before = await Promise.all(environment.clusters.map(({ api }) => addressOf(api, 'web')));
    await disturb();
    for (const address of before) await expect.poll(() => answers(address)).toEqual(bothNodes);
    expect(await Promise.all(environment.clusters.map(({ api }) => addressOf(api, 'web')))).toEqual(before);
    expect(await environment.all()).toHaveLength(2);
  });
});

describe('controllers', () => {
  test('work one at a time; when the one that does is killed, another goes on', async () => {
    const [{ api }] = environment.clusters;
    const second = environment.startController();
    await expect.poll(() => logLines(second).length, soon).toBeGreaterThan(0);
    await createServed(api, plainService('one'));
    expect(await environment.all()).toHaveLength(3);
    expect(logLines(second).filter(({ msg }) => msg === 'load balancer applied')).toEqual([]);
    controller.child.kill('SIGKILL');
    await createServed(api, plainService('two'));
    expect(await environment.all()).toHaveLength(4);
    controller = second;
  });

  test('leave neither orphans nor duplicates when killed while load balancers are made and removed', async () => {
    const [{ api }] = environment.clusters;
    const names = Array.from({ length: 6 }, (_, index) => `quick${index}`);
    await Promise.all(names.map((name) => api.create(apiResources.services, plainService(name), signal)));
    await expect.poll(async () => (await environment.all()).length, { ...soon, interval: 20 }).toBeGreaterThan(4);
    await removeService(api, 'one');
    controller.child.kill('SIGKILL');
    for (const name of ['quick0', 'two']) await removeService(api, name);
    controller = environment.startController();
    const addresses = await Promise.all(names.slice(1).map((name) => addressOf(api, name)));
    expect(new Set(addresses).size).toBe(5);
    await expect.poll(() => environment.all(), soon).toHaveLength(5 + 2);
    const services = await api.list(apiResources.services, { namespace: 'default' }, signal);
    expect(services.items.map(({ metadata }) => metadata.name).sort()).toEqual([...names.slice(1), 'web']);
    await Promise.all(names.slice(1).map((name) => deleteService(api, name)));
  });
});

test('20 Services at once are served, and removed at once', async () => {
  const [{ api }] = environment.clusters;
  const names = Array.from({ length: 20 }, (_, index) => `many${index}`);
  const addresses = await Promise.all(names.map((name) => createServedWithin(name, 180_000)));
  expect(new Set(addresses).size).toBe(20);
  expect(await environment.running()).toHaveLength(22);
  await Promise.all(names.map((name) => removeService(api, name)));
  await expect.poll(() => environment.all(), { timeout: 360_000, interval: 500 }).toHaveLength(2);
}, 600_000);

test('the last Service takes its container along, and the program ends when told to', async () => {
  for (const { api } of environment.clusters) await deleteService(api, 'web');
  expect(await environment.all()).toEqual([]);
  await controller.stop();
  expect(await controller.ended).not.toBe('SIGKILL'); // in time, by itself
});

async function createServedWithin(name: string, timeout: number): Promise<string> {
  const [{ api }] = environment.clusters;
  await api.create(apiResources.services, plainService(name), signal);
  let found: readonly string[] = [];
  const ask = async (): Promise<number> => {
    found = addressesIn(await read(api, name));
    return found.length;
  };
  await expect.poll(ask, { timeout, interval: 1000 }).toBe(1);
  return found[0] ?? '';
}

function disposable(program: LabProcess): { readonly program: LabProcess } & AsyncDisposable {
  return { program, [Symbol.asyncDispose]: () => program.stop() };
}
