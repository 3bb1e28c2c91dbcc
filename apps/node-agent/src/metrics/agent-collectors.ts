import type { ProxyHealth } from '@switchyard/core/health';
import type { ReconcilerStatus } from '@switchyard/core/engine';
import { collectedFamily, type CollectedSample, type MetricFamily } from '@switchyard/host';
import { featureStageOf } from '../config/feature-gates.ts';
import { kubernetesVersion } from '../config/kubernetes-version.ts';
import { version } from '../version.ts';
import type { MetricsPage } from './metrics-page.ts';

/** State of a running agent on the page. */
export interface AgentView {
  readonly backend: string;
  readonly featureGates: ReadonlyMap<string, boolean>;
  readonly status: () => Pick<ReconcilerStatus, 'families'>;
  readonly health: () => ProxyHealth;
}

/** Adds the metrics of a running agent. */
export function addAgentCollectors(page: MetricsPage, view: AgentView): void {
  page.addCollector(() => [
    buildInfo(),
    collectedFamily('switchyard_build_info', [[1, view.backend, process.version, version]]),
    collectedFamily('kubernetes_feature_enabled', [...view.featureGates].map(featureSample)),
    healthFamily(view.health()),
    pendingFamily(view.status()),
  ]);
}

function buildInfo(): MetricFamily {
  const { major, minor } = kubernetesVersion;
  const gitVersion = `v${major}.${minor}.0+switchyard-${version}`;
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  return collectedFamily('kubernetes_build_info', [
    [1, '', 'v8', '', '', gitVersion, process.version, String(major), String(minor), platform],
  ]);
}

/** General availability has an empty stage. */
function featureSample([name, isOn]: readonly [string, boolean]): CollectedSample {
  return [isOn ? 1 : 0, name, featureStageOf(name)];
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
