import { parseArgs } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';
import type { ReportFile } from '../model/report-file.ts';
import { diffHtml, diffJson, diffText } from './diff-text.ts';
import { pickSide, splitSide, diffRuns, diffStatus } from './diff.ts';
import { type FileIo, readFileText, writeFileText } from './files.ts';
import { reportHtml } from './html/report-html.ts';
import { junitXml } from './junit.ts';
import { mergeReports } from './columns.ts';
import { readReport, writeReport } from './read-report.ts';
import { textSummary } from './text-summary.ts';

/** The process around the commands that only read and write files. */
export interface ReportIo extends FileIo {
  /** To standard output, as it is. */
  readonly print: (text: string) => void;
  readonly colours: boolean;
}

type Writer = Pick<ReportIo, 'writeText' | 'print'>;

/** Files for reports of a run; undefined: not written. */
export interface ReportTargets {
  readonly json: string | undefined;
  readonly junit: string | undefined;
  readonly html: string | undefined;
}

/** Number of failures that a summary prints with all their checks. */
export const failuresDetailed = 40;

/** Text of `--help` of both commands. */
export const reportUsage = `switchyard-conformance report FILE.json... [--text] [--json F] [--junit F] [--html F]
  Makes pages and summaries of runs that were done before. Several files are merged; runs of the same
  proxy and cell count as further rounds. Without an option: --text.

switchyard-conformance diff A.json B.json [--json F] [--html F]
  Compares what two proxies did in the same checks. A.json#iptables-nft, or A.json#iptables-nft/ipv6, picks
  one of several runs of a file. Exit status: 0 no difference, 1 differences, 2 trouble.
`;

/** As the file of `--json`: standard output. */
export const standardOutput = '-';

/**
 * Writes the requested reports; `-` as the JSON file is one line of standard output. Rejects with `ConfigError` when a file cannot be
 * written.
 */
export async function writeReports(report: ReportFile, targets: ReportTargets, io: Writer): Promise<void> {
  const made: readonly (readonly [string | undefined, () => string])[] = [
    [targets.json, () => writeReport(report)],
    [targets.junit, () => junitXml(report)],
    [targets.html, () => reportHtml(report)],
  ];
  for (const [file, make] of made) {
    if (file === standardOutput) io.print(`${JSON.stringify(report)}\n`);
    else if (file !== undefined) await writeFileText(io, file, make());
  }
}

/** `report`: pages from runs done before. Resolves with 0; rejects with `ConfigError` for wrong arguments and files. */
export async function reportCommand(args: readonly string[], io: ReportIo): Promise<0> {
  const { values, positionals } = parsed(args, ['text', 'help'], ['json', 'junit', 'html']);
  if (values['help'] === true) return helped(io);
  if (positionals.length === 0) throw new ConfigError('report.usage', `report: no file given\n\n${reportUsage}`);
  const reports: ReportFile[] = [];
  for (const file of positionals) reports.push(await read(io, file));
  const report = mergeReports(reports);
  const targets = { json: values['json'], junit: values['junit'], html: values['html'] } as ReportTargets;
  await writeReports(report, targets, io);
  const isPage = Object.values(targets).some((file) => file !== undefined);
  if (values['text'] === true || !isPage) {
    io.print(textSummary(report, { colours: io.colours, detailed: Number.POSITIVE_INFINITY }));
  }
  return 0;
}

/** `diff`: resolves with the exit status 0 (no difference) or 1; rejects with `ConfigError` (exit status 2) for trouble. */
export async function diffCommand(args: readonly string[], io: ReportIo): Promise<0 | 1> {
  const { values, positionals } = parsed(args, ['help'], ['json', 'html']);
  if (values['help'] === true) return helped(io);
  const [first, second] = positionals.map(splitSide);
  if (first === undefined || second === undefined || positionals.length > 2) {
    throw new ConfigError('diff.usage', `diff: compares two runs, and ${positionals.length} given\n\n${reportUsage}`);
  }
  const a = pickSide(first.file, await read(io, first.file), first.choice);
  const b = pickSide(second.file, await read(io, second.file), second.choice);
  const diff = diffRuns(a, b);
  if (typeof values['json'] === 'string') await writeFileText(io, values['json'], diffJson(diff));
  if (typeof values['html'] === 'string') await writeFileText(io, values['html'], diffHtml(diff));
  io.print(diffText(diff, { colours: io.colours }));
  return diffStatus(diff);
}

function helped(io: ReportIo): 0 {
  io.print(reportUsage);
  return 0;
}

type Values = Readonly<Record<string, string | boolean | undefined>>;

function parsed(
  args: readonly string[],
  flags: readonly string[],
  files: readonly string[],
): { readonly values: Values; readonly positionals: readonly string[] } {
  const options = Object.fromEntries([
    ...flags.map((name) => [name, { type: 'boolean' as const }]),
    ...files.map((name) => [name, { type: 'string' as const }]),
  ]);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    return { values: values as Values, positionals };
  } catch (cause) {
    throw new ConfigError('report.usage', `${messageOf(cause)}\n\n${reportUsage}`, { cause });
  }
}

async function read(io: ReportIo, file: string): Promise<ReportFile> {
  return readReport(file, await readFileText(io, file));
}
