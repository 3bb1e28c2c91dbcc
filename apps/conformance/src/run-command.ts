import { destroyLab, listLabs } from '@switchyard/lab';
import { readFile } from 'node:fs/promises';
import { readScenarioFiles } from './cases/scenario-files.ts';
import type { ClusterConfig, ProxyConfig, RunConfig } from './config.ts';
import { selectCases } from './engine/select-cases.ts';
import { foreignProxy, ownProxy, type ProxyProgram } from './lab/proxy-program.ts';
import { runLabs } from './lab/run-labs.ts';
import type { OnProgress } from './model/progress.ts';
import type { ReportFile } from './model/report-file.ts';
import { runOnCluster } from './run-cluster.ts';

/** Version of the tool, as reports name it. */
export const version = '0.1.0';

/** Runs the chosen cases and returns the report. Rejects with `signal.reason` when it aborts. */
export async function runCommand(config: RunConfig, onProgress: OnProgress, signal: AbortSignal): Promise<ReportFile> {
  const { proxy } = config;
  const scenarios = await readScenarioFiles(config.scenarioFiles, (file) => readFile(file, 'utf8'));
  const selection = { ...config, scenarios };
  if (proxy.kind === 'cluster') {
    const runs = await runOnCluster({ ...selection, proxy }, onProgress, signal);
    return { schema: 'switchyard-conformance/2', version, runs };
  }
  const programs = await programsOf(proxy);
  const { cell = 'dual', jobs } = config;
  const runs = programs.map((program) => {
    const cases = selectCases({ dataplane: program.about.dataplane, cell }, selection);
    return { program, cell, cases, labs: Math.max(1, Math.floor(jobs / programs.length)) };
  });
  await removeDeadLabs(config.labName, onProgress);
  const reports = await runLabs({ ...config, runs, onProgress }, signal);
  return { schema: 'switchyard-conformance/2', version, runs: reports };
}

async function programsOf(proxy: Exclude<ProxyConfig, ClusterConfig>): Promise<readonly ProxyProgram[]> {
  return proxy.kind === 'own' ? Promise.all(proxy.backends.map((name) => ownProxy(name))) : [foreignProxy(proxy)];
}

/** Removes labs of killed runs; labs of running ones stay. */
export async function removeDeadLabs(prefix: string, onProgress: OnProgress): Promise<void> {
  const pattern = new RegExp(`^${prefix}[a-z]{2}$`);
  const dead = (await listLabs()).filter(({ name, status }) => status === 'dead' && pattern.test(name));
  for (const { name } of dead) {
    onProgress({ kind: 'lane', lane: name, text: 'removing what an earlier run left' });
    await destroyLab(name);
  }
}
