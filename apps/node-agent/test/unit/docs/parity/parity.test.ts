import { ManualClock } from '@switchyard/core/testing';
import { noopLogger, noopMetrics } from '@switchyard/core';
import { refusedMetrics } from '../refused-metrics.ts';
import { describe, expect, test } from 'vitest';
import { featureGates } from '../../../../src/config/feature-gates.ts';
import { gateTable } from '../../../../src/config/gate-table.ts';
import { flags } from '../../../../src/config/flags/table.ts';
import { kubeProxySchema } from '../../../../src/config/schema/kube-proxy-fields.ts';
import { healthRoutes } from '../../../../src/http/health-routes.ts';
import { metricsRoutes } from '../../../../src/http/metrics-routes.ts';
import { debugState, now } from '../../../../src/http/testing/debug-bench.ts';
import { testMetricsPage, testViews } from '../../../../src/http/testing/test-views.ts';
import { gateRows } from './gate-rows.ts';
import { httpRows, ownPaths } from './http-rows.ts';
import { declaredMetrics, metricRows, theirMetrics } from './metric-rows.ts';
import { parityPage, parityTables } from './page.ts';
import { comparedReleases, countStandings, type ParityRow, releaseText, standings } from './row.ts';
import { fieldChanges, flagChanges, flagRows, theirFlags } from './setting-rows.ts';
import { sources } from './sources.ts';

const allRows: readonly ParityRow[] = parityTables.flatMap(([, rows]) => rows);

describe('rows', () => {
  test.each(parityTables)('%s: every row has a standing of the list, and a note unless it is the same', (_, rows) => {
    expect(rows.filter(({ standing }) => !standings.includes(standing))).toEqual([]);
    expect(rows.filter(({ standing, note }) => standing !== 'same' && note === '')).toEqual([]);
    expect(countStandings(rows).reduce((sum, count) => sum + count)).toBe(rows.length);
  });

  test.each(parityTables)('%s: no subject is compared twice', (_, rows) => {
    const subjects = rows.map(({ what }) => what);
    expect(subjects).toEqual([...new Set(subjects)]);
  });

  test('no row is unknown', () => {
    expect(allRows.filter((row) => /\bunknown\b|\?/i.test(`${row.what} ${row.standing} ${row.note}`))).toEqual([]);
  });

  test.each(allRows.filter(({ since, until }) => since !== undefined || until !== undefined))(
    '$what: its range is in order, and its release is on the page',
    ({ since = '1.36', until = '1.38', what }) => {
      expect(comparedReleases.indexOf(since)).toBeLessThanOrEqual(comparedReleases.indexOf(until));
      expect(parityPage()).toContain(`| ${what} | ${releaseText({ since, until })} |`);
    },
  );

  test('every compared release has its sources', () => {
    expect(sources.map(({ release }) => release)).toEqual(comparedReleases);
  });
});

test.each([
  [{}, '1.36 to 1.38'],
  [{ since: '1.37' }, 'from 1.37'],
  [{ since: '1.38' }, '1.38'],
  [{ until: '1.37' }, 'up to 1.37'],
  [{ until: '1.36' }, '1.36'],
  [{ since: '1.37', until: '1.37' }, '1.37'],
] as const)('the range %o is written as %s', (range, text) => {
  expect(releaseText(range)).toBe(text);
});

describe('surfaces', () => {
  const clock = new ManualClock(now);
  const served = new Set([
    ...healthRoutes({
      health: () => {
        throw new Error('not called');
      },
      clock,
      metrics: noopMetrics,
    }).map(({ path }) => `health:${path}`),
    ...metricsRoutes({
      metricsPage: testMetricsPage,
      views: testViews(),
      debug: debugState(),
      mode: 'nftables',
      enableProfiling: true,
      featureGates: new Map(),
      profiler: () => Promise.reject(new Error('not called')),
      clock,
      logger: noopLogger,
    }).map(({ path }) => `metrics:${path}`),
  ]);

  test.each(httpRows.filter(({ paths }) => paths.length > 0))('$what: is served unless it is missing', (row) => {
    const found = row.paths.filter((path) => served.has(path));
    expect(found).toEqual(row.standing === 'missing' ? [] : row.paths);
  });

  test('every served path is in exactly one row', () => {
    const listed = [
      ...httpRows.filter(({ standing }) => standing !== 'missing').flatMap(({ paths }) => paths),
      ...ownPaths,
    ];
    expect(listed.toSorted()).toEqual([...served].toSorted());
  });
});

describe('flags and fields', () => {
  test('the flags are those of kube-proxy, in both directions', () => {
    const claimed = flags.filter(({ group }) => group !== 'Switchyard').map(({ name }) => name);
    expect(claimed.toSorted()).toEqual(theirFlags.toSorted());
    expect(flagRows).toHaveLength(theirFlags.length);
  });

  test('every change among releases is of a flag or field in the table, and in its note', () => {
    expect(Object.keys(flagChanges).filter((name) => !theirFlags.includes(name))).toEqual([]);
    const paths = new Set(kubeProxySchema.fields.map(({ path }) => path));
    expect(Object.keys(fieldChanges).filter((path) => !paths.has(path))).toEqual([]);
    for (const change of Object.values({ ...flagChanges, ...fieldChanges })) expect(parityPage()).toContain(change);
  });
});

describe('metrics', () => {
  const names = theirMetrics.map(({ name }) => name);

  const refused = new Set(refusedMetrics.map(({ name }) => name));

  test('every metric of the table is declared or refused, and every declared one is in the table', () => {
    const expected = names.filter((name) => !refused.has(name));
    expect([...declaredMetrics().keys()].toSorted()).toEqual(expected.toSorted());
  });

  test('metrics that are not served have a reason', () => {
    const missing = metricRows.filter(({ standing }) => standing === 'missing');
    expect(missing.map(({ what }) => what)).toContain('`go_*`');
    expect(missing.map(({ what, since }) => [what, since])).toContainEqual([
      '`rest_client_dns_resolution_duration_seconds`',
      '1.38',
    ]);
  });
});

describe('feature gates', () => {
  const rows = new Map(gateRows.map((row) => [row.name, row]));

  test.each([
    ['of 1.37', 'NFTablesNetlink', ['-', 'beta, on', 'beta, on']],
    ['that is on in 1.38', 'KubeProxyNFTablesLocalhostNodePorts', ['-', 'alpha, off', 'beta, on']],
    ['with another stage in 1.37', 'NativeHistograms', ['alpha, off', 'beta, on', 'beta, on']],
    ['that is locked', 'NFTablesProxyMode', ['GA, locked on', 'GA, locked on', 'GA, locked on']],
  ])('a gate %s has its state in each release', (_, name, states) => {
    expect(comparedReleases.map((release) => rows.get(name)?.states[release])).toEqual(states);
  });

  test('every gate of kube-proxy that the agent knows has a row, and no removed one', () => {
    const ours = new Set(gateTable.filter(({ isOurs }) => isOurs === true).map(({ name }) => name));
    const theirGates = featureGates.filter(({ name }) => !ours.has(name));
    expect([...ours].filter((name) => rows.has(name))).toEqual([]);
    for (const { name } of theirGates) expect(rows.get(name)?.effect).toMatch(/./);
    expect(rows.has('TopologyAwareHints')).toBe(false);
  });
});

test('the page names its releases, and links to each section that it counts', () => {
  const page = parityPage();
  expect(page).toMatch(/^# Beside kube-proxy 1\.36 to 1\.38\n/);
  const headings = new Set(
    Array.from(page.matchAll(/^## (.*)$/gm), ([, title = '']) => `#${title.toLowerCase().replaceAll(' ', '-')}`),
  );
  const links = parityTables.map(([name]) => /\((#.*)\)/.exec(name)?.[1]);
  expect(links.filter((link) => link === undefined || !headings.has(link))).toEqual([]);
});
