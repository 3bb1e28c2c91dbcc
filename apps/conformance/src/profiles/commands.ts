import { parseArgs, type ParseArgsConfig } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';
import { quoted } from '../lab/proxy-program.ts';
import type { RunReport } from '../model/report-file.ts';
import { pickSide, splitSide } from '../report/diff.ts';
import { readFileText, writeFileText } from '../report/files.ts';
import { readReport } from '../report/read-report.ts';
import type { ReportIo } from '../report/commands.ts';
import { conformanceReport, type ConformanceReport } from './conformance-report.ts';
import { readConformanceReport, writeConformanceReport } from './report-yaml.ts';
import { badge, type PublishedReport, reportsPage } from './reports-page.ts';

/** Access of the commands to files. */
export interface PublishIo extends ReportIo {
  /** Names of the files in a folder. */
  readonly listFolder: (folder: string) => Promise<readonly string[]>;
}

export const publishUsage = `switchyard-conformance publish FILE.json[#PROXY] --project NAME --project-version V --organization O --url URL [FLAGS]
  Makes a ConformanceReport (YAML) of a run that --json wrote.
  --contact TEXT          where questions go; may be repeated
  --mode NAME             the proxy's mode; default: that of the run
  --kubernetes-version V  of the cluster; default: lab
  --reproduce COMMAND     how to repeat the run; default: from the run
  --sign-key FILE         Ed25519 private key (PEM) to sign with
  --out FILE              default: standard output
switchyard-conformance verify FILE.yaml... [--key FILE]
  Checks that reports are unchanged, and signed with the private key of this public one (PEM).
switchyard-conformance pages FOLDER
  Writes README.md and badges/ in a folder of reports: all side by side.
`;

const publishOptions = {
  project: { type: 'string' },
  'project-version': { type: 'string' },
  organization: { type: 'string' },
  url: { type: 'string' },
  contact: { type: 'string', multiple: true },
  mode: { type: 'string' },
  'kubernetes-version': { type: 'string', default: 'lab' },
  reproduce: { type: 'string' },
  'sign-key': { type: 'string' },
  out: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `publish`: a ConformanceReport of a run. Resolves with 0; rejects with `ConfigError`. */
export async function publishCommand(args: readonly string[], io: PublishIo): Promise<0> {
  const { values, positionals } = parsed(args, publishOptions);
  if (values.help === true) return helped(io);
  const [given, ...more] = positionals;
  if (given === undefined || more.length > 0) throw wrong(`publish takes one FILE.json; got ${positionals.length}`);
  const { file, choice } = splitSide(given);
  const run = readReport(file, await readFileText(io, file));
  const { column } = pickSide(file, run, choice);
  const [first] = column.runs;
  if (first === undefined) throw wrong(`${file} has no run`);
  const required = (name: 'project' | 'project-version' | 'organization' | 'url'): string => {
    const value = values[name];
    if (value === undefined || value === '') throw wrong(`publish: give --${name}`);
    return value;
  };
  const report = conformanceReport(column, {
    implementation: {
      organization: required('organization'),
      project: required('project'),
      url: required('url'),
      version: required('project-version'),
      contact: values.contact ?? [],
    },
    mode: values.mode ?? (isOwn(first) ? first.proxy.name : first.proxy.dataplane),
    kubernetesVersion: values['kubernetes-version'],
    reproduce: values.reproduce ?? commandOf(first),
    toolVersion: run.version,
  });
  const key = values['sign-key'];
  const text = writeConformanceReport(report, key === undefined ? undefined : await readFileText(io, key));
  if (values.out === undefined) io.print(text);
  else {
    await writeFileText(io, values.out, text);
    io.print(`${values.out}: ${summaryOf(report)}\n`);
  }
  return 0;
}

function isOwn({ target, proxy }: RunReport): boolean {
  return target === 'lab' && proxy.command === undefined;
}

/** Command that repeats a run. */
function commandOf({ target, proxy, cell, seed }: RunReport): string {
  const rest = `--ip-family ${cell} --seed ${seed}`;
  if (target === 'cluster') return `switchyard-conformance --target cluster --mode ${proxy.dataplane} ${rest}`;
  if (proxy.command === undefined) return `sudo ./dev conformance --backend ${proxy.name} ${rest}`;
  return `sudo ./dev conformance --proxy-cmd ${quoted(proxy.command)} --mode ${proxy.dataplane} ${rest}`;
}

function summaryOf({ profiles }: ConformanceReport): string {
  return profiles
    .map(({ name, required, extended }) => `${name} ${required?.result ?? `${extended?.result} (extended)`}`)
    .join(', ');
}

/** `verify`: whether reports are as they were written. Resolves with 0; rejects with `ConfigError` for the first that is not. */
export async function verifyCommand(args: readonly string[], io: PublishIo): Promise<0> {
  const { values, positionals } = parsed(args, {
    key: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  } as const);
  if (values.help === true) return helped(io);
  if (positionals.length === 0) throw wrong('verify: no file given');
  const key = values.key === undefined ? undefined : await readFileText(io, values.key);
  for (const file of positionals) {
    const { report, seal } = readConformanceReport(file, await readFileText(io, file), key);
    io.print(`${file}: unchanged${seal.signature === undefined ? '' : ', signed'}: ${summaryOf(report)}\n`);
  }
  return 0;
}

/** `pages`: README.md and badges of a folder. Resolves with 0; rejects with `ConfigError`. */
export async function pagesCommand(args: readonly string[], io: PublishIo): Promise<0> {
  const { values, positionals } = parsed(args, { help: { type: 'boolean', short: 'h' } } as const);
  if (values.help === true) return helped(io);
  const [folder, ...more] = positionals;
  if (folder === undefined || more.length > 0) throw wrong(`pages takes one FOLDER; got ${positionals.length}`);
  const pages = await pagesOf(folder, io);
  for (const [name, text] of pages) await writeFileText(io, `${folder}/${name}`, text);
  io.print(`${folder}/README.md shows ${pages.size - 1} reports\n`);
  return 0;
}

/** The files that `pages` writes, by their name in the folder. Rejects with `ConfigError` for what is no report, and without reports. */
export async function pagesOf(
  folder: string,
  io: Pick<PublishIo, 'readText' | 'listFolder'>,
): Promise<ReadonlyMap<string, string>> {
  let names: readonly string[];
  try {
    names = (await io.listFolder(folder)).filter((name) => name.endsWith('.yaml')).toSorted();
  } catch (cause) {
    throw new ConfigError('pages.read', `reading ${folder}: ${messageOf(cause)}`, { cause });
  }
  if (names.length === 0) throw new ConfigError('pages.empty', `${folder} has no report (*.yaml)`);
  const reports: PublishedReport[] = [];
  for (const file of names) {
    const path = `${folder}/${file}`;
    reports.push({ file, ...readConformanceReport(path, await readFileText(io, path)) });
  }
  const badges = reports.map(
    ({ file, report }) => [`badges/${file.replace(/\.yaml$/, '.svg')}`, badge(report)] as const,
  );
  return new Map([['README.md', reportsPage(reports)], ...badges]);
}

function parsed<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (cause) {
    throw wrong(messageOf(cause), cause);
  }
}

function helped(io: PublishIo): 0 {
  io.print(publishUsage);
  return 0;
}

function wrong(what: string, cause?: unknown): ConfigError {
  return new ConfigError('publish.usage', `${what}\n\n${publishUsage}`, { cause });
}
