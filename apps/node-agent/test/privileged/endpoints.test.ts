import { readFile } from 'node:fs/promises';
import { type ApiObject, type ApiResource, apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  type ProbeRequest,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { askInside, type InsideRequest } from './http-client.ts';

const { signal } = new AbortController();
const args = ['--metrics-bind-address=127.0.0.1:10249', '--profiling', '--logging-format=json'];
/** Not in use by anything else in the lab. */
const contestedPort = 31_999;
const events: ApiResource<RecordedEvent> = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

interface RecordedEvent extends ApiObject {
  readonly type?: string;
  readonly reason?: string;
  readonly action?: string;
  readonly note?: string;
  readonly regarding?: { readonly kind?: string; readonly namespace?: string; readonly name?: string };
}

let cluster: LabCluster;
let node: LabNode;
let inside: Prober;
let outside: Prober;
let agent: LabProcess;
let clusterIp: string;
let nodePort: number;

beforeAll(async () => {
  cluster = await startCluster({ name: 'http', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  inside = await createProber(node, signal);
  outside = await createProber(cluster.lab.client, signal);
  const { deployment, service } = zeroapp({ port: 8080, delayShutdown: 0, terminationGracePeriod: 1 });
  const created = await cluster.api.create(apiResources.services, service, signal);
  clusterIp = created.spec?.clusterIP ?? '';
  nodePort = created.spec?.ports?.[0]?.nodePort ?? 0;
  await cluster.api.create(apiResources.deployments, deployment, signal);
  agent = cluster.startAgent(node, { args });
  await waitForAgents(cluster.lab, [agent], signal);
  await until(async () => (await probe(inside, clusterIp, 80)) === 'answered');
});

afterAll(async () => {
  await inside?.[Symbol.asyncDispose]();
  await outside?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

const ask = (request: InsideRequest | string) => askInside(node, request);
const nodeAddress = (): string => node.addresses.IPv4 ?? '';

async function probe(from: Prober, address: string, port: number): Promise<string> {
  const request: ProbeRequest = { protocol: 'http', address, port, path: '/' };
  return (await from.probe(request)).status;
}

async function scale(replicas: number): Promise<void> {
  const body = { kind: 'merge', body: { spec: { replicas } } } as const;
  await cluster.api.patch(apiResources.deployments, { name: 'zeroapp' }, body, signal);
}

async function eventsOf(reason: string): Promise<readonly RecordedEvent[]> {
  const { items } = await cluster.api.list(events, {}, signal);
  return items.filter((event) => event.reason === reason);
}

/** Another program that has a port of the node, from when this resolves on. */
async function occupy(port: number): Promise<LabProcess> {
  const listen = `require('node:net').createServer().listen(${port}, '0.0.0.0')`;
  const other = node.spawn(process.execPath, ['-e', listen]);
  await until(async () => (await node.run('ss', ['-Hltn', `sport = :${port}`])).stdout !== '');
  return other;
}

describe("kube-proxy's endpoints", () => {
  test.each<readonly [string | InsideRequest, number, string | undefined, RegExp]>([
    ['/healthz', 200, 'text/plain; charset=utf-8', /^ok$/],
    ['/metrics', 200, 'text/plain; version=0.0.4; charset=utf-8', /^kubeproxy_proxy_healthz_total\{code="200"\} \d+$/m],
    ['/metrics/slis', 200, 'text/plain; version=0.0.4; charset=utf-8', /^kubernetes_healthcheck\{/m],
    ['/proxyMode', 200, 'text/plain; charset=utf-8', /^nftables$/],
    ['/configz', 200, 'application/json', /^\{"kubeproxy.config.k8s.io":\{.*\}\n$/],
    ['/statusz', 200, 'text/plain; charset=utf-8', /^\nkube-proxy statusz\nWarning: .*\n\nStarted: /],
    ['/flagz', 200, 'text/plain; charset=utf-8', /^\nkube-proxy flagz\nWarning: /],
    ['/debug/pprof/', 200, 'text/plain; charset=utf-8', /profile\?seconds=N/],
    ['/debug/pprof/profile?seconds=0.2&format=v8', 200, 'application/json', /^\{"nodes":\[/],
    ['/debug/pprof/heap?seconds=0.2&format=v8', 200, 'application/json', /^\{"head":/],
    ['/livez', 404, 'text/plain; charset=utf-8', /^404 page not found\n$/],
    [{ path: '/metrics', method: 'POST' }, 405, 'text/plain; charset=utf-8', /^405 /],
    [{ path: '/metrics', method: 'HEAD' }, 200, 'text/plain; version=0.0.4; charset=utf-8', /^$/],
    [{ path: '/healthz', port: 10_256 }, 200, 'application/json', /"nodeEligible":true,"healthy":true/],
    [{ path: '/livez', port: 10_256, method: 'HEAD' }, 200, 'application/json', /^$/],
  ])('%j is answered with %i', async (...row) => {
    const [request, status, type, body] = row;
    const answer = await ask(request);
    expect([answer.status, answer.headers['content-type']]).toEqual([status, type]);
    expect(answer.body).toMatch(body);
  });

  test('/flagz names flags that were given', async () => {
    const { body } = await ask('/flagz');
    expect(body).toMatch(/^metrics-bind-address=127\.0\.0\.1:10249$/m);
    expect(body).toMatch(/^profiling=true$/m);
  });

  test('the metrics server is heard on loopback only', async () => {
    expect(await probe(outside, nodeAddress(), 10_249)).toBe('refused');
  });

  test('PUT /debug/flags/v changes what is logged, at once', async () => {
    const traced = async () => (await readLog(agent)).filter(({ level }) => level === 'trace').length;
    expect(await traced()).toBe(0);
    const answer = await ask({ path: '/debug/flags/v', method: 'PUT', body: '6' });
    expect(answer).toMatchObject({ status: 200, body: 'successfully set klog.logging.verbosity to 6\n' });
    await scale(0);
    await until(async () => (await traced()) > 0);
    await ask({ path: '/debug/flags/v', method: 'PUT', body: '2' });
    await scale(1);
    await until(async () => (await probe(inside, clusterIp, 80)) === 'answered');
  });
});

test('KEP-3836: a Node that the autoscaler is about to delete is a 503 of /healthz only, with a healthy proxy', async () => {
  const taint = async (taints: readonly object[] | null): Promise<void> => {
    const body = { kind: 'merge', body: { spec: { taints } } } as const;
    await cluster.api.patch(apiResources.nodes, { name: node.nodeName }, body, signal);
  };
  const healthz = () => ask({ path: '/healthz', port: 10_256 });
  await taint([{ key: 'ToBeDeletedByClusterAutoscaler', value: '1795', effect: 'NoSchedule' }]);
  await until(async () => (await healthz()).status === 503);
  expect(JSON.parse((await healthz()).body)).toMatchObject({
    nodeEligible: false,
    healthy: true,
    status: { IPv4: { healthy: true }, IPv6: { healthy: true } },
  });
  expect((await ask({ path: '/livez', port: 10_256 })).status).toBe(200);
  await taint(null);
  await until(async () => (await healthz()).status === 200);
  expect((await ask('/metrics')).body).toMatch(/^kubeproxy_proxy_healthz_total\{code="503"\} [1-9]/m);
});

describe('ours, beside the kernel', () => {
  /** The word that a probe has for a verdict. */
  const seen: Readonly<Record<string, string>> = { forward: 'answered', reject: 'refused', drop: 'timeout' };

  test.each<readonly [string, () => readonly [Prober, string, string, number], string]>([
    ['a cluster IP', () => [inside, '127.0.0.1', clusterIp, 80], 'forward'],
    ['a port that the cluster IP does not have', () => [inside, nodeAddress(), clusterIp, 81], 'reject'],
    ['an address of the ServiceCIDR that no Service has', () => [inside, nodeAddress(), '10.96.200.200', 80], 'drop'],
    ['a NodePort, from outside', () => [outside, '172.18.0.100', nodeAddress(), nodePort], 'forward'],
  ])('/debug/explain of %s says what the kernel does', async (...row) => {
    const [, flow, verdict] = row;
    const [from, source, address, port] = flow();
    const query = `from=${source}&to=${address}:${port}/TCP`;
    const { body } = await ask({ path: `/debug/explain?${query}`, headers: { accept: 'application/json' } });
    expect(JSON.parse(body)).toMatchObject({ verdict: { kind: verdict } });
    expect(await probe(from, address, port)).toBe(seen[verdict]);
  });

  test('/debug/explain follows the pods, with the reason', async () => {
    const path = `/debug/explain?from=172.18.0.100&to=${nodeAddress()}:${nodePort}`;
    await scale(0);
    await until(async () => (await ask(path)).body.includes('\nreject: '));
    expect((await ask(path)).body).toMatch(
      /^ {2}noUsableEndpoints {2,}no endpoint of default\/zeroapp:http\/TCP is usable/m,
    );
    expect(await probe(outside, nodeAddress(), nodePort)).toBe('refused');
    await scale(1);
    await until(async () => (await ask(path)).body.includes('\nforward to the only endpoint, source address kept\n'));
    expect(await probe(outside, nodeAddress(), nodePort)).toBe('answered');
  });

  test('/debug/forwarding shows the serving pods, /debug/dump their kernel state', async () => {
    const { items } = await cluster.api.list(apiResources.pods, {}, signal);
    const ips = items
      .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
      .map(({ status }) => status?.podIP);
    const { status, body } = await ask('/debug/forwarding?service=default/zeroapp:http/TCP');
    expect(status).toBe(200);
    const { families } = JSON.parse(body) as { families: readonly { services: readonly Record<string, unknown>[] }[] };
    expect(families[0]?.services).toMatchObject([
      {
        key: 'default/zeroapp:http/TCP',
        status: { kind: 'applied' },
        endpoints: ips.map((address) => ({ address, usedBy: ['Cluster', 'Local'] })),
      },
    ]);
    const dump = await ask('/debug/dump');
    expect(dump.body).toMatch(/^# IPv4: rules last known to be right \d+ s ago\n/);
    expect(dump.body).toContain(`frontend ${clusterIp}:80/TCP\n`);
    for (const ip of ips) expect(dump.body).toContain(`${ip}:8080`);
  });

  test('a bad question is a 400 that says how to ask', async () => {
    expect(await ask('/debug/explain?from=me')).toMatchObject({
      status: 400,
      body: expect.stringContaining('usage: /debug/explain?') as string,
    });
  });
});

test('a healthCheckNodePort in use is an Event on its Service, costs no other, and is answered once it is free', async () => {
  const other = await occupy(contestedPort);
  const { service } = zeroapp({ name: 'contested' });
  const spec = { ...service.spec, selector: { app: 'zeroapp' }, healthCheckNodePort: contestedPort };
  await cluster.api.create(apiResources.services, { ...service, spec }, signal);
  await until(async () => (await eventsOf('FailedToStartServiceHealthcheck')).length > 0);
  expect(await eventsOf('FailedToStartServiceHealthcheck')).toMatchObject([
    {
      type: 'Warning',
      action: 'Listen',
      regarding: { kind: 'Service', namespace: 'default', name: 'contested' },
      note: expect.stringMatching(
        /^node \S+ does not answer the healthCheckNodePort of default\/contested, will retry: /,
      ) as string,
    },
  ]);
  expect(await probe(outside, nodeAddress(), nodePort)).toBe('answered');
  await other.stop();
  await until(async () => (await statusFromOutside(contestedPort)) === 200);
});

async function statusFromOutside(port: number): Promise<number | undefined> {
  const answer = await outside.probe({ protocol: 'http', address: nodeAddress(), port });
  return answer.status === 'answered' ? answer.httpStatus : undefined;
}

test('needs less than 80 MB when idle, after all that', async () => {
  const rss = async (): Promise<number> => {
    const status = await readFile(`/proc/${agent.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  };
  await until(async () => (await rss()) < 80);
});

describe('the port of the metrics server in use', () => {
  let other: LabProcess;

  beforeAll(async () => {
    await agent.stop();
    other = await occupy(10_249);
  });

  test('ends the agent with bindAddressHardFail: code 1, one line, an Event on the Node, forwarding untouched', async () => {
    const agent = cluster.startAgent(node, { args: [...args, '--bind-address-hard-fail'] });
    expect(await agent.ended).toBe(1);
    const last = (await readFile(agent.logFile, 'utf8')).trimEnd().split('\n').at(-1) ?? '';
    expect(last).toMatch(
      /^switchyard-agent: the metrics server cannot listen on 127\.0\.0\.1:10249: address already in use, and bindAddressHardFail is set: free the port or give another --metrics-bind-address$/,
    );
    expect(await eventsOf('FailedToStartMetricServer')).toMatchObject([
      { type: 'Warning', regarding: { kind: 'Node', name: node.nodeName } },
    ]);
    expect(await probe(outside, nodeAddress(), nodePort)).toBe('answered');
  });

  test('costs nothing else without it, and is answered once it is free', async () => {
    agent = cluster.startAgent(node, { args });
    await waitForAgents(cluster.lab, [agent], signal);
    expect(await probe(outside, nodeAddress(), nodePort)).toBe('answered');
    const warnings = (await readLog(agent)).filter(({ msg }) => msg === 'metrics cannot listen, will retry');
    expect(warnings).toHaveLength(1);
    await other.stop();
    await until(async () => (await ask('/proxyMode')).body === 'nftables');
  });
});
