import type { PeersOptions } from './options.ts';
import { grouped, type PeerFigures, peersTable } from './peer-figures.ts';
import { endpointsPerService } from '../big-cluster.ts';
import { textTable } from '../../src/report/report-html.ts';

/** A finished run. */
export interface PeersReport {
  /** When it began. */
  readonly date: string;
  readonly machine: string;
  /** Versions by program: `kube-proxy`, `kube-apiserver`, `etcd`, `switchyard`. */
  readonly versions: Readonly<Record<string, string>>;
  /** `kube-apiserver`, or `lab` for the lab's own. */
  readonly apiServer: 'kube-apiserver' | 'lab';
  readonly options: Pick<
    PeersOptions,
    'rounds' | 'changes' | 'churn' | 'burst' | 'connects' | 'minSyncPeriod' | 'patience'
  >;
  /** Proxies that did not run, with the reason. */
  readonly left: readonly string[];
  readonly figures: readonly PeerFigures[];
}

/** The tables of a run as aligned text, one per size. */
export function terminalText(report: PeersReport): string {
  const parts = sizesOf(report).map(
    (services) => `${sizeName(services)}\n\n${textTable(peersTable(ofSize(report, services), report.options))}\n`,
  );
  return [...parts, ...notes(report).map((line) => `${line}\n`)].join('\n');
}

/** The same for a document: a line of circumstances, then a table per size. */
export function markdownText(report: PeersReport): string {
  const { date, machine, versions, options } = report;
  const programs = Object.entries(versions).map(([name, version]) => `${name}: ${version}`);
  const { rounds, minSyncPeriod } = options;
  const turns = `${rounds} turns each, \`minSyncPeriod\` ${minSyncPeriod} ms`;
  const server = report.apiServer === 'lab' ? 'The API server of the lab' : 'A real API server';
  const head = [`Measured ${date.slice(0, 10)} on ${machine}.`, `${programs.join('; ')}. ${server}, ${turns}.`];
  const tables = sizesOf(report).map((services) => {
    const [names = [], ...lines] = peersTable(ofSize(report, services), options);
    const rule = names.map((_, column) => (column === 0 ? '---' : '---:'));
    const rows = [names, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`);
    return `**${sizeName(services)}**\n\n${rows.join('\n')}`;
  });
  return `${[head.join('\n'), ...tables, ...notes(report)].join('\n\n')}\n`;
}

/** Proxies without all figures. */
function notes({ left, figures }: PeersReport): readonly string[] {
  const failed = figures.flatMap(({ peer, services, failure }) =>
    failure === undefined ? [] : [`Failed: ${peer} at ${grouped(services)} Services: ${failure}`],
  );
  return [...left.map((line) => `Not measured: ${line}`), ...failed];
}

function sizeName(services: number): string {
  return `${grouped(services)} Services x ${endpointsPerService} endpoints`;
}

function sizesOf({ figures }: PeersReport): readonly number[] {
  return [...new Set(figures.map(({ services }) => services))];
}

function ofSize({ figures }: PeersReport, size: number): readonly PeerFigures[] {
  return figures.filter(({ services }) => services === size);
}
