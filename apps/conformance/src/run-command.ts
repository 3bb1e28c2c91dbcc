import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { ConfigError, systemClock } from '@switchyard/core';
import { type ApiServerConnection, inClusterConnection, kubeconfigConnection } from '@switchyard/core/kubernetes';
import { readScenarioFiles } from './cases/scenario-files.ts';
import { cleanUpCluster, openClusterEnvironment } from './cluster/open-cluster-environment.ts';
import type { ClusterConfig, RunConfig } from './config.ts';
import { runProxies } from './engine/run-round.ts';
import { selectCases, type Selection } from './engine/select-cases.ts';
import { foreignProxy, ownProxy } from './lab/proxy-program.ts';
import { removeDeadLabs, runLabs } from './lab/run-labs.ts';
import type { OnProgress } from './model/case.ts';
import { reportOf, type ReportFile, type RunReport } from './model/report-file.ts';

/** Runs the chosen cases and returns the report. Rejects with `signal.reason` when it aborts. */
export async function runCommand(config: RunConfig, onProgress: OnProgress, signal: AbortSignal): Promise<ReportFile> {
  const { proxy, cell = 'dual', jobs } = config;
  const scenarios = await readScenarioFiles(config.scenarioFiles, (file) => readFile(file, 'utf8'));
  const selection = { ...config, scenarios };
  if (proxy.kind === 'cluster') return reportOf(await runOnCluster({ ...selection, proxy }, onProgress, signal));
  const programs =
    proxy.kind === 'own' ? await Promise.all(proxy.backends.map((name) => ownProxy(name))) : [foreignProxy(proxy)];
  const runs = programs.map((program, index) => {
    const cases = selectCases({ dataplane: program.about.dataplane, cell }, selection);
    return { program, cell, cases, labs: Math.max(1, Math.ceil((jobs - index) / programs.length)) };
  });
  await removeDeadLabs(config.labName, onProgress);
  return reportOf(await runLabs({ ...config, runs, onProgress }, signal));
}

const lane = 'cluster';

/** Runs the cases on a cluster, in one namespace that is removed before this resolves or rejects. */
async function runOnCluster(
  config: RunConfig & Selection & { readonly proxy: ClusterConfig },
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<readonly RunReport[]> {
  const place = { connection: await connectionOf(config), clock: systemClock };
  const options = {
    ...place,
    ...config.cluster,
    random: () => randomInt(2 ** 32) / 2 ** 32, // for names that differ between runs
    onProgress: (text: string) => onProgress({ kind: 'lane', lane, text }),
    proxyName: config.proxy.name,
    dataplane: config.proxy.dataplane,
    isInPod: config.cluster.podEnvironment !== undefined,
  };
  await using environment = await openClusterEnvironment(options, signal);
  const { proxyUnderTest: proxy, ipFamilies, nodes } = environment;
  const [first] = ipFamilies;
  const cell = config.cell ?? (ipFamilies.length > 1 ? 'dual' : first === 'IPv6' ? 'ipv6' : 'ipv4');
  const hasAllFamilies = config.cell === undefined;
  const cases = selectCases({ dataplane: proxy.dataplane, cell, hasAllFamilies }, config);
  const openEnvironment = () => Promise.resolve(environment);
  const run = { target: 'cluster', proxy, cell, cases, laneNames: [lane], openEnvironment } as const;
  return await runProxies([{ ...run, kernel: nodes.node1.kernel }], { ...config, jobs: 1, onProgress }, signal);
}

/** Removes the namespaces of earlier runs from a cluster and returns their names. */
export async function cleanUp(config: RunConfig, report: OnProgress, signal: AbortSignal): Promise<readonly string[]> {
  const tell = (text: string): void => report({ kind: 'lane', lane, text });
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
    const what = `cannot connect to a cluster: ${(cause as Error).message}; give --kubeconfig FILE`;
    throw new ConfigError('conformance.kubeconfig', what, { cause });
  }
}
