import { readFile } from 'node:fs/promises';
import { type DataplaneName, kubeProxyDefault, parseScenario, type ParsedScenario } from '@switchyard/scenarios';
import { checkScenarioId, readScenarioFiles } from './cases/scenario-files.ts';
import { selectCases } from './engine/select-cases.ts';
import { checkRoot } from './lab/check-root.ts';
import { type BackendName, foreignProxy, ownProxy, type ProxyProgram } from './lab/proxy-program.ts';
import { removeDeadLabs, runLabs } from './lab/run-labs.ts';
import type { FamilyCell, OnProgress } from './model/case.ts';
import { type ReportFile, reportOf } from './model/report-file.ts';

/** Scenario and proxy of `runScenario`. */
export interface RunScenarioOptions {
  /** Path of a scenario file, or its text with the name that the file would have, without `.yaml`. */
  readonly scenario: string | { readonly name: string; readonly text: string };
  /**
   * Proxy under test: a command for a shell on node1, with the placeholders of `--proxy-cmd` (`{kubeconfig}`, `{config}`, `{flags}`,
   * `{node}`, `{mode}`), or one of Switchyard's own modes, which needs a built checkout.
   */
  readonly proxy:
    | {
        readonly command: string;
        /** Name in reports; default: the program's. */
        readonly name?: string;
        /** Mode of kube-proxy whose answers are expected where modes differ; default iptables. */
        readonly mode?: DataplaneName;
      }
    | { readonly backend: BackendName };
  /** IP families of the lab's cluster; default `dual`. */
  readonly ipFamily?: FamilyCell;
  /** Prefix of the lab's name: 1 to 6 of a-z and 0-9; default `scen`. Runs at the same time need different ones. */
  readonly labName?: string;
  /** Takes progress; must not throw. Default: no progress. */
  readonly onProgress?: OnProgress;
}

/**
 * Runs one scenario with real packets, in a new lab of network namespaces, and returns the report: one run, with a case for each IP
 * family of the file. Failed checks are part of the report (`exitStatusOf`, `textSummary`), not a rejection. The lab is removed
 * before this resolves or rejects. Needs root and Linux.
 *
 * Rejects with `ConfigError` without root, for a file that cannot be read, a scenario that is not valid (with its line) and a wrong
 * command; with `signal.reason` when `signal` aborts. A lab that cannot be built is a case with the status `error`.
 */
export async function runScenario(options: RunScenarioOptions, signal: AbortSignal): Promise<ReportFile> {
  const { ipFamily: cell = 'dual', labName = 'scen', onProgress = () => undefined } = options;
  const scenarios = await scenarioOf(options.scenario);
  const program = await programOf(options.proxy);
  const cases = selectCases({ dataplane: program.about.dataplane, cell }, { scenarios, globs: [], tags: [] });
  checkRoot();
  signal.throwIfAborted();
  await removeDeadLabs(labName, onProgress);
  const runs = [{ program, cell, cases, labs: 1 }];
  const once = { labName, jobs: 1, seed: 1, rounds: 1, isFailFast: false };
  return reportOf(await runLabs({ ...once, runs, onProgress }, signal));
}

async function scenarioOf(given: RunScenarioOptions['scenario']): Promise<readonly ParsedScenario[]> {
  if (typeof given === 'string') return readScenarioFiles([given], (file) => readFile(file, 'utf8'));
  checkScenarioId(given.name, given.name);
  return [parseScenario(given.name, given.text)];
}

async function programOf(proxy: RunScenarioOptions['proxy']): Promise<ProxyProgram> {
  if ('backend' in proxy) return ownProxy(proxy.backend);
  const { command, name, mode = kubeProxyDefault.name } = proxy;
  return foreignProxy({ command, name, dataplane: mode });
}
