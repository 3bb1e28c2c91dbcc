import { randomInt } from 'node:crypto';
import { homedir } from 'node:os';
import { ConfigError, type Random, systemClock } from '@switchyard/core';
import { type ApiServerConnection, inClusterConnection, kubeconfigConnection } from '@switchyard/core/kubernetes';
import { cleanUpCluster, openClusterEnvironment } from './cluster/index.ts';
import type { ClusterConfig, RunConfig } from './config.ts';
import { type Selection, selectCases } from './engine/select-cases.ts';
import { Gate } from './engine/gate.ts';
import { plannedRuns, runProxy } from './engine/run-proxy.ts';
import type { FamilyCell } from './model/case.ts';
import type { OnProgress } from './model/progress.ts';
import type { RunReport } from './model/report-file.ts';

const lane = 'cluster';

/** Random numbers for names that differ between runs. */
const random: Random = () => randomInt(2 ** 32) / 2 ** 32;

/** Runs the cases on a cluster, in one namespace that is removed before this resolves or rejects. */
export async function runOnCluster(
  config: RunConfig & Selection & { readonly proxy: ClusterConfig },
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<readonly RunReport[]> {
  const { proxy, cluster, seed, rounds, isFailFast } = config;
  const tell = (text: string): void => onProgress({ kind: 'lane', lane, text });
  const connection = await connectionOf(config);
  await using environment = await openClusterEnvironment(
    {
      connection,
      clock: systemClock,
      random,
      onProgress: tell,
      ...cluster,
      proxyName: proxy.name,
      dataplane: proxy.dataplane,
    },
    signal,
  );
  const cell = config.cell ?? cellOf(environment.ipFamilies);
  const { proxyUnderTest } = environment;
  const cases = selectCases({ dataplane: proxyUnderTest.dataplane, cell }, config);
  onProgress({ kind: 'planned', runs: plannedRuns([{ proxy: proxyUnderTest, cell, cases }], rounds) });
  let hasFailed = false;
  const reports = await runProxy(
    {
      target: 'cluster',
      proxy: proxyUnderTest,
      cell,
      seed,
      rounds,
      onProgress,
      cases,
      laneNames: [lane],
      openEnvironment: () => Promise.resolve(environment),
      measuring: new Gate(1),
      onFailure: () => (hasFailed = true),
      isOver: () => isFailFast && hasFailed,
    },
    signal,
  );
  const { kernel } = environment.nodes.node1; // not this machine's
  return reports.map((report) => ({ ...report, kernel }));
}

/** Removes the namespaces of earlier runs from a cluster and returns their names. */
export async function cleanUp(
  config: RunConfig,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const tell = (text: string): void => onProgress({ kind: 'lane', lane, text });
  const connection = await connectionOf(config);
  return cleanUpCluster({ connection, clock: systemClock, onProgress: tell }, signal);
}

async function connectionOf({ cluster }: RunConfig): Promise<ApiServerConnection> {
  const file = cluster.kubeconfig ?? `${homedir()}/.kube/config`;
  try {
    if (cluster.podEnvironment !== undefined) {
      return await inClusterConnection({ env: cluster.podEnvironment, clock: systemClock });
    }
    return await kubeconfigConnection(file, systemClock, cluster.context);
  } catch (cause) {
    throw new ConfigError(
      'conformance.kubeconfig',
      `cannot connect to a cluster: ${(cause as Error).message}; give --kubeconfig FILE`,
      {
        cause,
      },
    );
  }
}

function cellOf(families: readonly string[]): FamilyCell {
  if (families.length > 1) return 'dual';
  return families[0] === 'IPv6' ? 'ipv6' : 'ipv4';
}
