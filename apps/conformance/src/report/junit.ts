import type { CaseResult, ReportFile, RunReport } from '../model/report-file.ts';
import { countsOf } from './columns.ts';
import { failedChecks, failureText, rolloutLine } from './failures.ts';
import { element, escapeMarkup } from './markup.ts';
import { painter } from './texts.ts';

/**
 * The report as JUnit XML, as CI systems read it: a testsuite per run, a testcase per case whose classname is the run and the kind of
 * case. A skip has its reason, a failure its checks with the packet's path; a lab error is an `error`.
 */
export function junitXml(report: ReportFile): string {
  const counts = countsOf(report.runs);
  const total = report.runs.reduce((sum, { duration }) => sum + duration, 0);
  const suites = report.runs.map(testSuite).join('\n');
  const attributes = { name: 'switchyard-conformance', ...countAttributes(counts), time: seconds(total) };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', attributes, `\n${suites}\n`)}\n`;
}

function testSuite(run: RunReport): string {
  const { proxy, cell, target, kernel, seed, round } = run;
  const properties = [
    ['proxy', proxy.name],
    ['dataplane', proxy.dataplane],
    ...(proxy.command === undefined ? [] : [['command', proxy.command] as const]),
    ['target', target],
    ['cell', cell],
    ['kernel', kernel],
    ['seed', String(seed)],
    ['round', String(round)],
  ] as const;
  const head = propertiesOf(properties);
  const cases = run.cases.map((one) => testCase(run, one));
  const attributes = {
    name: suiteName(run),
    ...countAttributes(countsOf([run])),
    time: seconds(run.duration),
    timestamp: run.startedAt,
  };
  return element('testsuite', attributes, `\n${[head, ...cases].join('\n')}\n`);
}

function propertiesOf(properties: readonly (readonly [string, string])[]): string {
  return element('properties', {}, properties.map(([name, value]) => element('property', { name, value })).join(''));
}

function suiteName({ proxy, cell, target, round }: RunReport): string {
  return `${proxy.name} ${cell} ${target}${round > 1 ? ` round ${round}` : ''}`;
}

function testCase(run: RunReport, result: CaseResult): string {
  const { id, title, why, duration, tags, rollouts, inconclusive = [] } = result;
  const properties = [
    ['title', title],
    ['why', why],
    ['tags', tags.join(' ')],
  ] as const;
  const head = propertiesOf(properties);
  const output = [
    ...rollouts.map((one) => `${one.title}: ${rolloutLine(one)}`),
    ...inconclusive.map((check) => `inconclusive ${check.id}, ${check.what}: ${check.because}`),
  ].join('\n');
  const children = [head, verdict(result), output === '' ? '' : element('system-out', {}, escapeMarkup(output))].join(
    '',
  );
  const className = `${run.proxy.name}.${run.cell}.${id.split('/')[0] ?? ''}`;
  return element('testcase', { name: id, classname: className, time: seconds(duration) }, children);
}

function verdict(result: CaseResult): string {
  const because = result.because ?? '';
  switch (result.status) {
    case 'passed':
      return '';
    case 'skipped':
      return element('skipped', { message: because === '' ? 'without a reason' : because });
    case 'error':
      return element('error', { type: 'lab', message: because }, escapeMarkup(because));
    case 'failed': {
      const checks = failedChecks([result]);
      const [first] = checks;
      const brief =
        first === undefined ? because : `${first.what}: expected ${first.expected}, observed ${first.observed}`;
      const more = checks.length > 1 ? ` (and ${checks.length - 1} more)` : '';
      const text = failureText(result, checks, painter(false));
      return element('failure', { type: 'conformance', message: brief + more }, escapeMarkup(text));
    }
    default:
      return result.status satisfies never;
  }
}

function countAttributes(counts: ReturnType<typeof countsOf>): Record<string, string> {
  const { passed, failed, skipped, error } = counts;
  return {
    tests: String(passed + failed + skipped + error),
    failures: String(failed),
    errors: String(error),
    skipped: String(skipped),
  };
}

/** JUnit's times are seconds. */
function seconds(duration: number): string {
  return (duration / 1000).toFixed(3);
}
