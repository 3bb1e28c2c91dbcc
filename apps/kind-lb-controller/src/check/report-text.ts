import { type Millis, millis } from '@switchyard/core';
import {
  durationText,
  percent,
  type ProfileRow,
  rangeText,
  settingsText,
  type Warning,
  wholeSeconds,
  type Workload,
  type WorkloadReport,
} from '@switchyard/loss/workload';
import type { CheckReport } from './check-service.ts';

/** A report for people. Ends with a newline. */
export function reportText(report: CheckReport): string {
  const { service, policy, type, deployments, warnings, isLossless } = report;
  const lines = [
    `Service ${service}: ${type}, externalTrafficPolicy ${policy}`,
    ...warnings.map(warningLine),
    ...deployments.flatMap((one) => ['', ...workloadLines(one, report)]),
    '',
    isLossless ? 'Nothing is lost, even in the worst case.' : 'A rollout may lose requests.',
  ];
  return `${lines.join('\n')}\n`;
}

function workloadLines({ workload, proxy, serves, rows, warnings }: WorkloadReport, report: CheckReport): string[] {
  const notices = rangeText(proxy.noticesTerminating.shortest, proxy.noticesTerminating.longest);
  const fallback = proxy.terminatingFallback ? '' : ', and drops what comes then (no fallback to terminating pods)';
  return [
    `Deployment ${workload.name}: ${settingsText(workload)}`,
    `  readinessProbe: ${probeText(workload)}`,
    `  preStop: ${preStopText(workload)}; terminationGracePeriodSeconds ${workload.gracePeriod / 1000}`,
    `  a pod serves ${durationText(serves)} after its deletion (${drainText(report.drain)})`,
    `  proxy: ${report.proxy}, notices a deletion after ${notices}${fallback}`,
    '',
    ...table(rows, serves),
    ...(warnings.length === 0 ? [] : ['', ...warnings.map(warningLine)]),
  ];
}

function probeText({ readinessProbe, startup, startupFrom }: Workload): string {
  const origin = startupFrom === 'pods' ? 'as its pods were' : 'by the probe';
  const ready = `ready ${durationText(startup)} after creation, ${origin}`;
  if (readinessProbe === undefined) return `none; ${ready}`;
  const { initialDelay, period, successes } = readinessProbe;
  return `after ${durationText(initialDelay)}, every ${durationText(period)}, ready at success ${successes}; ${ready}`;
}

function preStopText({ preStop }: Workload): string {
  if (preStop.kind === 'none') return 'none';
  return preStop.kind === 'sleep' ? `sleep ${durationText(preStop.duration)}` : `unknown (${preStop.what})`;
}

function drainText(drain: Millis | undefined): string {
  return drain === undefined
    ? 'preStop, then it is taken to stop at SIGTERM'
    : `preStop, then ${durationText(drain)} after SIGTERM`;
}

const header = ['PROFILE', 'NODE OUT AFTER', 'MUST SERVE', 'MISSING', 'EXPECTED LOSS', 'WORST LOSS', 'NONE UP'];

function table(rows: readonly ProfileRow[], serves: Millis): readonly string[] {
  const cells = [header, ...rows.map((row) => cellsOf(row, serves))];
  const widths = header.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  return cells.map((line) => `  ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd());
}

function cellsOf(row: ProfileRow, serves: Millis): readonly string[] {
  const { profile, noticesAfter, mustServe, expected, worst, noneUp } = row;
  return [
    profile,
    noticesAfter === undefined ? '-' : rangeText(noticesAfter.shortest, noticesAfter.longest),
    mustServe === undefined ? 'never enough' : durationText(mustServe),
    mustServe === undefined || mustServe <= serves ? '-' : `${wholeSeconds(millis(mustServe - serves))} s`,
    durationText(expected),
    durationText(worst),
    noneUp === 0 ? '-' : percent(noneUp),
  ];
}

function warningLine({ reason, message }: Warning): string {
  return `  warning ${reason}: ${message}`;
}
