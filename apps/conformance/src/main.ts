import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError, DataplaneError, messageOf, systemClock, UsageError } from '@switchyard/core';
import { checkWritable } from '@switchyard/rollout';
import {
  type Config,
  type FileCommand,
  hasColours,
  type ListConfig,
  readConfig,
  type RunConfig,
  sonobuoyFolderOf,
  usage,
} from './config.ts';
import { listCases } from './cases/list.ts';
import { readScenarioFiles } from './cases/scenario-files.ts';
import { selectCases } from './engine/select-cases.ts';
import { checkRoot } from './lab/check-root.ts';
import { pagesCommand, publishCommand, type PublishIo, verifyCommand } from './profiles/commands.ts';
import type { OnProgress } from './model/case.ts';
import type { ReportFile } from './model/report-file.ts';
import { diffCommand, failuresDetailed, reportCommand, standardOutput, writeReports } from './report/commands.ts';
import { exitStatusOf } from './report/columns.ts';
import { PartialReport } from './report/partial-report.ts';
import { ProgressView } from './report/progress-view.ts';
import { leaveForSonobuoy } from './report/sonobuoy.ts';
import { textSummary } from './report/text-summary.ts';
import { cleanUp, runCommand } from './run-command.ts';

const colours = hasColours(process.stdout);
const io: PublishIo = {
  readText: (file) => readFile(file, 'utf8'),
  writeText: async (file, text) => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  },
  listFolder: (folder) => readdir(folder),
  print: (text) => process.stdout.write(text),
  colours,
};

async function run(config: RunConfig, signal: AbortSignal): Promise<void> {
  if (config.target === 'lab') checkRoot();
  for (const file of Object.values(config.output)) {
    if (file !== undefined && file !== standardOutput) checkWritable(file, 'conformance.output');
  }
  const view = new ProgressView({
    write: (text) => process.stderr.write(text),
    width: () => (process.stderr.isTTY ? process.stderr.columns : undefined),
    isVerbose: config.isVerbose,
    colours: hasColours(process.stderr),
    clock: systemClock,
  });
  const partial = new PartialReport();
  const onEvent: OnProgress = (event) => {
    partial.note(event);
    view.onEvent(event);
  };
  let report;
  try {
    if (config.cluster.isCleanUp) {
      const gone = await cleanUp(config, view.onEvent, signal);
      return io.print(`${gone.length === 0 ? 'nothing was left' : `removed ${gone.join(', ')}`}\n`);
    }
    report = await runCommand(config, onEvent, signal);
  } catch (error) {
    if (signal.aborted) await write(config, partial.report());
    throw error;
  } finally {
    await view[Symbol.asyncDispose]();
  }
  await write(config, report);
  process.exitCode = exitStatusOf(report);
}

async function write({ output, sonobuoyFolder: folder }: RunConfig, report: ReportFile | undefined): Promise<void> {
  if (report === undefined) return;
  io.print(textSummary(report, { colours, detailed: failuresDetailed }));
  await writeReports(report, output, io);
  if (folder !== undefined) await leaveForSonobuoy(report, { folder, writeText: io.writeText });
}

async function list(config: ListConfig): Promise<void> {
  const scenarios = await readScenarioFiles(config.scenarioFiles, io.readText);
  const cases = selectCases({ ...config, cell: config.cell ?? 'dual' }, { ...config, scenarios });
  io.print(listCases(cases, config));
}

async function execute(config: Config, signal: AbortSignal): Promise<void> {
  switch (config.kind) {
    case 'help':
      return console.log(usage);
    case 'run':
      return run(config, signal);
    case 'list':
      return list(config);
    default:
      process.exitCode = await fileCommandsByName[config.kind](config.args, io);
  }
}

const fileCommandsByName: Readonly<Record<FileCommand, (args: readonly string[], io: PublishIo) => Promise<number>>> = {
  diff: diffCommand,
  report: reportCommand,
  publish: publishCommand,
  verify: verifyCommand,
  pages: pagesCommand,
};

/** Splits a `SuppressedError` into its errors, the first one first; any other error stays alone. */
function apart(error: unknown): readonly unknown[] {
  if (!(error instanceof SuppressedError)) return [error];
  const { suppressed, error: later } = error as { readonly suppressed: unknown; readonly error: unknown };
  return [...apart(suppressed), ...apart(later)];
}

function wordsOf(error: unknown): string {
  const isOurs = error instanceof DataplaneError || error === stop.signal.reason;
  return isOurs || !(error instanceof Error) ? messageOf(error) : (error.stack ?? error.message);
}

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(name, () => {
    console.error(`switchyard-conformance: ${name}: cleaning up, which takes a moment`);
    stop.abort(new Error(`stopped by ${name}`));
  });
}
// The reader of the output has ended, as head(1) does, or the terminal was closed. Do not crash: labs must be removed first.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (cause) =>
    stop.abort(new Error(`the output cannot be written any more: ${cause.message}`, { cause })),
  );
}
try {
  await execute(readConfig(process.argv.slice(2)), stop.signal);
} catch (error) {
  for (const one of apart(error)) console.error(`switchyard-conformance: ${wordsOf(one)}`);
  const folder = sonobuoyFolderOf(process.argv);
  if (folder !== undefined && !stop.signal.aborted)
    await leaveForSonobuoy(wordsOf(error), { folder, writeText: io.writeText });
  const isUsage = error instanceof ConfigError || error instanceof UsageError;
  process.exitCode = isUsage ? 2 : 3;
}
