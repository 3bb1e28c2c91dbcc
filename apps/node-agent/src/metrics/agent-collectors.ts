import type { IpFamily, ProxyHealth, ReconcilerStatus } from '@switchyard/core';
import { collectedFamily, type CollectedSample, type MetricFamily } from '@switchyard/host';
import { version } from '../version.ts';
import { stageOf } from './feature-stages.ts';
import type { MetricsPage } from './metrics-page.ts';

/** What the pages say of a running agent. */
export interface AgentView {
  readonly backend: string;
  readonly featureGates: ReadonlyMap<string, boolean>;
  readonly status: () => Pick<ReconcilerStatus, 'families'>;
  readonly health: () => ProxyHealth;
}

/** The kube-proxy this agent stands in for: whose configuration it reads and whose metrics it serves. */
const kubernetes = { major: '1', minor: '36' };

/** Adds what only the running agent knows. */
export function addAgentCollectors(page: MetricsPage, view: AgentView): void {
  page.addCollector(() => [
    buildInfo(),
    collectedFamily('switchyard_build_info', [[1, view.backend, process.version, version]]),
    collectedFamily('kubernetes_feature_enabled', [...view.featureGates].map(featureSample)),
    healthFamily(view.health()),
    pendingFamily(view.status()),
  ]);
  page.addCollector(slis(view.health), '/metrics/slis');
}

function buildInfo(): MetricFamily {
  const { major, minor } = kubernetes;
  const gitVersion = `v${major}.${minor}.0+switchyard-${version}`;
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  return collectedFamily('kubernetes_build_info', [
    [1, '', 'v8', '', '', gitVersion, process.version, major, minor, platform],
  ]);
}

function featureSample([name, isOn]: readonly [string, boolean]): CollectedSample {
  return [isOn ? 1 : 0, name, stageOf(name)];
}

function healthFamily({ isLive, isReady }: ProxyHealth): MetricFamily {
  return collectedFamily('switchyard_health', [
    [isReady ? 1 : 0, 'healthz'],
    [isLive ? 1 : 0, 'livez'],
  ]);
}

function pendingFamily({ families }: Pick<ReconcilerStatus, 'families'>): MetricFamily {
  return collectedFamily(
    'switchyard_oldest_pending_change_seconds',
    [...families].map(([ipFamily, { pendingFor = 0 }]) => [pendingFor / 1000, ipFamily] as const),
  );
}

/** Checked when the page is read, and counted since the process started. */
function slis(health: () => ProxyHealth): () => readonly MetricFamily[] {
  const counts = new Map<string, { readonly name: string; readonly type: string; success: number; error: number }>();
  return () => {
    const results = checks(health());
    for (const { name, type, isGood } of results) {
      const key = `${name} ${type}`;
      const count = counts.get(key) ?? { name, type, success: 0, error: 0 };
      count[isGood ? 'success' : 'error']++;
      counts.set(key, count);
    }
    return [
      collectedFamily(
        'kubernetes_healthcheck',
        results.map(({ name, type, isGood }) => [isGood ? 1 : 0, name, type] as const),
      ),
      collectedFamily(
        'kubernetes_healthchecks_total',
        [...counts.values()].flatMap(({ name, type, success, error }) => [
          [success, name, 'success', type] as const,
          [error, name, 'error', type] as const,
        ]),
      ),
    ];
  };
}

interface Check {
  readonly name: string;
  readonly type: 'healthz' | 'livez';
  readonly isGood: boolean;
}

/** Each family keeps up, for both; the node may be used, and every family was applied once, for /healthz only. */
function checks({ families, isNodeEligible }: ProxyHealth): readonly Check[] {
  const keepsUp = (type: Check['type']): readonly Check[] =>
    [...families].map(([ipFamily, { isHealthy }]) => ({
      name: `keeps-up-${lower(ipFamily)}`,
      type,
      isGood: isHealthy,
    }));
  const applied = [...families].map(([ipFamily, { lastApplied }]) => ({
    name: `applied-${lower(ipFamily)}`,
    type: 'healthz' as const,
    isGood: lastApplied !== undefined,
  }));
  const eligible = { name: 'node-eligible', type: 'healthz' as const, isGood: isNodeEligible };
  return [...keepsUp('healthz'), ...applied, eligible, ...keepsUp('livez')];
}

function lower(ipFamily: IpFamily): string {
  return ipFamily.toLowerCase();
}
