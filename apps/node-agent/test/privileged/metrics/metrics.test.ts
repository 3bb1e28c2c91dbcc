import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies, type MetricDeclaration, type MetricDeclarations, metricDeclarations } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../agent-log.ts';
import { get, type Prometheus, prometheusPrograms, startPrometheus } from './prometheus.ts';

const { signal } = new AbortController();
const page = 'http://127.0.0.1:10249/metrics';

let cluster: LabCluster;
let node: LabNode;
let client: Prober;
let agent: LabProcess;
let prometheus: Prometheus;
let clusterIp = '';

/** Connections a test makes to the Service with pods, and to the one without. */
const connections = 7;

beforeAll(async () => {
  cluster = await startCluster({ name: 'metrics', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  client = await createProber(node, signal);
  agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  prometheus = await startPrometheus(node, { folder: `${cluster.lab.folder}/prometheus` });
  await createServices();
  // A restart adopts what is there, and the first process leaves its heartbeat.
  await agent.stop();
  agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  await useServices();
  await countersAreScraped(); // what was counted since the last reading is lost when endpoints change
  await changeEndpoints();
  await drift();
  await until(async () => (await prometheus.query('sum(switchyard_drift_total) > 0')).length > 0);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

async function createServices(): Promise<void> {
  const { deployment, service } = zeroapp({ port: 8080, delayShutdown: 0, terminationGracePeriod: 1 });
  const created = await cluster.api.create(apiResources.services, service, signal);
  clusterIp = created.spec?.clusterIP ?? '';
  const empty = { name: 'empty', namespace: 'default' };
  await cluster.api.create(
    apiResources.services,
    { metadata: empty, spec: { selector: { app: 'none' }, ports: [{ name: 'http', port: 80 }] } },
    signal,
  );
  await cluster.api.create(apiResources.deployments, deployment, signal);
  await until(async () => (await ask(clusterIp)) === 'answered');
}

async function useServices(): Promise<void> {
  const empty = await cluster.api.get(apiResources.services, { name: 'empty' }, signal);
  for (let index = 0; index < connections; index++) {
    expect(await ask(clusterIp)).toBe('answered');
    expect(await ask(empty.spec?.clusterIP ?? '')).not.toBe('answered');
  }
}

/**
 * Two changes. The second one always has a trigger time, a new pod's Ready condition; the first one has none if the pod
 * is gone before the controller sees it unready. A time is in whole seconds: not the second in which the agent started.
 */
async function changeEndpoints(): Promise<void> {
  for (const replicas of [0, 1]) {
    const scaled = { kind: 'merge', body: { spec: { replicas } } } as const;
    await cluster.api.patch(apiResources.deployments, { name: 'zeroapp' }, scaled, signal);
    await until(async () => ((await ask(clusterIp)) === 'answered') === replicas > 0);
  }
}

async function drift(): Promise<void> {
  const { stdout } = await node.run('nft', ['list', 'tables', 'inet']);
  const table = /table inet (\S+)/.exec(stdout)?.[1] ?? '';
  expect(await node.run('nft', ['add', 'chain', 'inet', table, 'foreign'])).toMatchObject({ exitCode: 0 });
}

/** Counters of Services are read every five seconds at most; rates need two scrapes. */
async function countersAreScraped(): Promise<void> {
  const seen = 'count(count_over_time(switchyard_service_connections_total{service="empty"}[10s]) >= 3) > 0';
  const current = `sum(switchyard_service_connections_total{service="empty"}) == ${connections}`;
  await until(async () => (await prometheus.query(`(${seen}) and (${current})`)).length > 0);
}

async function ask(address: string): Promise<string> {
  return (await client.probe({ protocol: 'http', address, port: 80, path: '/' })).status;
}

/** Declared and not on the page of this agent, and why. */
const absent: Readonly<Record<string, string>> = {
  kubernetes_healthcheck: 'on /metrics/slis',
  kubernetes_healthchecks_total: 'on /metrics/slis',
  switchyard_config_last_reload_timestamp_seconds: 'the configuration file has not changed',
};

describe('the page', () => {
  test('is read by promtool without an error; all it would name otherwise is a name of kube-proxy', async () => {
    const text = await get(node, page);
    const { code, output } = await promtool(text);
    expect({ code, output }).toEqual({
      code: 3, // lint, no error
      output:
        'kubeproxy_sync_proxy_rules_no_local_endpoints_total non-counter metrics should not have "_total" suffix\n',
    });
  });

  test('of health SLIs is read as well, after a health request', async () => {
    expect(await get(node, 'http://127.0.0.1:10249/healthz')).toBe('ok');
    const text = await get(node, `${page}/slis`);
    expect(text).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1\n');
    expect(await promtool(text)).toEqual({ code: 0, output: '' });
  });

  test('is read by promtool as it is: a broken line is an error', async () => {
    const { code } = await promtool(`${await get(node, page)}broken{a="b} 1\n`);
    expect(code).toBe(1);
  });

  test.each([
    ['text', '*/*', /^kubeproxy_proxy_livez_total\{code="200"\} \d+$/m, /\n$/],
    [
      'OpenMetrics',
      'application/openmetrics-text;version=1.0.0',
      /^# TYPE kubeproxy_proxy_livez counter$/m,
      /\n# EOF\n$/,
    ],
  ])('comes as %s if accepted', async (_, accept, line, end) => {
    const text = await get(node, page, accept);
    expect(text).toMatch(line);
    expect(text).toMatch(end);
  });

  test('has every metric that is declared, with its type and labels, and no other', async () => {
    const found = new Map((await targetMetadata()).map(({ metric, type }) => [metric, type]));
    const isHere = (set: MetricDeclaration['set']): boolean =>
      set === undefined || nftablesTraits.metricSets.includes(set);
    const expected = declared().filter(({ name, set }) => absent[name] === undefined && isHere(set));
    // Prometheus reads OpenMetrics, where the name of a counter's family has no _total.
    const named = expected.map(({ name, type }) => [type === 'counter' ? name.replace(/_total$/, '') : name, type]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(named));
    const text = await get(node, page);
    for (const { name, type, labels } of expected) {
      const sample =
        new RegExp(`^${type === 'histogram' ? `${name}_bucket` : name}(?:\\{(.*)\\})? `, 'm').exec(text)?.[1] ?? '';
      const names = [...sample.matchAll(/([a-z_]+)="(?:[^"\\\\]|\\\\.)*"/g)].map(([, label]) => label);
      expect([name, ...names]).toEqual([name, ...labels, ...(type === 'histogram' ? ['le'] : [])]);
    }
  });
});

describe('what it says', () => {
  const value = async (expr: string): Promise<number | undefined> => {
    const [result] = await prometheus.query(expr);
    return result === undefined ? undefined : Number(result.value[1]);
  };

  test("connections and refusals of single Services are the kernel's counts, all restarts included", async () => {
    const of = (service: string): string => `namespace="default",service="${service}",ip_family="IPv4"`;
    expect(await value(`switchyard_service_connections_total{${of('zeroapp')}}`)).toBeGreaterThanOrEqual(
      connections + 1,
    );
    expect(await value(`switchyard_service_connections_total{${of('empty')}}`)).toBe(connections);
    expect(await value(`switchyard_service_drops_total{${of('empty')},reason="no_endpoints"}`)).toBe(connections);
    expect(await value(`switchyard_service_drops_total{${of('empty')},reason="source_range"}`)).toBe(0);
    expect(await value('sum(switchyard_service_metrics_omitted)')).toBe(0);
  });

  test.each(ipFamilies)('the restart of %s wrote nothing, and exports the age of the rules', async (family) => {
    expect(await value(`switchyard_adoption_writes{ip_family="${family}"}`)).toBe(0);
    const unreconciled = await value(`switchyard_unreconciled_seconds{ip_family="${family}"}`);
    expect(unreconciled).toBeGreaterThan(0);
    expect(unreconciled).toBeLessThan(60);
  });

  test('a change with a trigger time has a latency', async () => {
    const count = await value('sum(kubeproxy_network_programming_duration_seconds_count)');
    expect(count).toBeGreaterThan(0);
    const sum = await value('sum(kubeproxy_network_programming_duration_seconds_sum)');
    expect((sum ?? 0) / (count ?? 1)).toBeLessThan(3);
  });

  test('drift is counted where it happened', async () => {
    expect(await value('switchyard_drift_total{kind="chain"} > 0')).toBeGreaterThan(0);
    expect(await value('sum(switchyard_drift_total{kind="rule"})')).toBe(0);
  });

  test('nothing has failed, nothing waits, and the agent is well', async () => {
    expect(await value('sum(switchyard_apply_failures_total)')).toBe(0);
    expect(await value('sum(kubeproxy_sync_proxy_rules_nftables_sync_failures_total)')).toBe(0);
    expect(await value('sum(switchyard_oldest_pending_change_seconds)')).toBe(0);
    expect(await value('sum(kubeproxy_sync_proxy_rules_endpoint_changes_pending)')).toBe(0);
    expect(await value('min(switchyard_health)')).toBe(1);
    expect(await value('max(switchyard_source_lag_seconds)')).toBeLessThan(130);
  });

  test('the process is that of the agent', async () => {
    const status = await readFile(`/proc/${agent.pid}/status`, 'utf8');
    const rss = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    const told = (await value('process_resident_memory_bytes')) ?? 0;
    expect(Math.abs(told - rss) / rss).toBeLessThan(0.2);
    expect(await value('time() - process_start_time_seconds')).toBeLessThan(120);
    expect(await value('process_open_fds')).toBeGreaterThan(10);
  });
});

describe('the Grafana dashboard', async () => {
  /** Panels whose queries need not return anything, and why. */
  const empty: Readonly<Record<string, string>> = {};
  const file = fileURLToPath(new URL('../../../../../deploy/grafana/switchyard-dashboard.json', import.meta.url));
  const { panels } = JSON.parse(await readFile(file, 'utf8')) as {
    readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
  };
  const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));

  test('has queries', () => {
    expect(queries.length).toBeGreaterThan(30);
  });

  test.each(queries)('%s: %s', async (title, expr) => {
    const asked = expr.replaceAll('$__rate_interval', '10s').replaceAll('$job', '.*').replaceAll('$instance', '.*');
    const result = await prometheus.query(asked);
    if (empty[title] === undefined) expect(result.length).toBeGreaterThan(0);
  });

  test('asks only for metrics that are declared', () => {
    const known = new Set(
      declared().flatMap(({ name, type }) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
      ),
    );
    const asked = queries.flatMap(
      ([, expr]) => expr.match(/\b(?:kubeproxy|switchyard|rest_client|process|nodejs)_\w+/g) ?? [],
    );
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
  });
});

interface Declared {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly set?: MetricDeclaration['set'];
}

function declared(): readonly Declared[] {
  return Object.values(metricDeclarations).flatMap(
    ({ counters, gauges, histograms, collected }: MetricDeclarations) => [
      ...Object.entries(counters).map(([name, one]) => ({ ...one, name, type: 'counter' })),
      ...Object.entries(gauges).map(([name, one]) => ({ ...one, name, type: 'gauge' })),
      ...Object.entries(histograms).map(([name, one]) => ({ ...one, name, type: 'histogram' })),
      ...Object.entries(collected).map(([name, one]) => ({ ...one, name })),
    ],
  );
}

async function targetMetadata(): Promise<readonly { readonly metric: string; readonly type: string }[]> {
  const data = await prometheus.api('targets/metadata');
  return data as readonly { readonly metric: string; readonly type: string }[];
}

async function promtool(text: string): Promise<{ readonly code: number; readonly output: string }> {
  const program = `${await prometheusPrograms()}/promtool`;
  return new Promise((resolve, reject) => {
    const child = execFile(program, ['check', 'metrics'], (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error);
      else resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
    child.stdin?.end(text);
  });
}
