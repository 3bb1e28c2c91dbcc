import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';

/** The parts of a panel that are looked at. */
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly datasource: object }[];
}

/** The parts of the dashboard that are looked at. */
interface Dashboard {
  readonly uid: string;
  readonly id?: number;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly Panel[];
}

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const dashboard = JSON.parse(read('deploy/grafana/switchyard-dashboard.json')) as Dashboard;
const { panels } = dashboard;

test('it has a schema Grafana 10 and later migrate from, a fixed uid, and no database id', () => {
  assert.ok(dashboard.schemaVersion >= 36);
  assert.equal(dashboard.uid, 'switchyard');
  assert.equal(dashboard.id, undefined);
});

test('ids and titles are unique; every panel has a description and queries', () => {
  assert.ok(panels.length > 25);
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length);
  for (const { type, title, description, targets = [] } of panels) {
    assert.ok(type === 'row' || (description?.endsWith('.') && targets.length > 0), title);
  }
});

test('no panel covers another, and all are inside the 24 columns', () => {
  for (const [index, { title, gridPos: a }] of panels.entries()) {
    assert.ok(a.w > 0 && a.h > 0 && a.x >= 0 && a.x + a.w <= 24, title);
    for (const { title: other, gridPos: b } of panels.slice(index + 1)) {
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(isApart, `${title} covers ${other}`);
    }
  }
});

test('every query has a letter of its own, the chosen data source, the chosen agents, and metrics of the agent', () => {
  const page = read('docs/reference/metrics.md');
  for (const { title, targets = [] } of panels) {
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
    for (const { expr, datasource } of targets) {
      assert.deepEqual(datasource, { type: 'prometheus', uid: '${datasource}' });
      const selectors = [...expr.matchAll(/(\w+)\{([^}]*)\}/g)];
      assert.ok(selectors.length > 0, expr);
      for (const [, metric = '', labels = ''] of selectors) {
        assert.match(labels, /job=~"\$job",instance=~"\$instance"/);
        const names = [metric, metric.replace(/_(?:bucket|count|sum)$/, '')];
        assert.ok(
          names.some((name) => page.includes(`\`${name}\``)),
          `${title}: the agent has no metric ${metric}`,
        );
      }
    }
  }
});

test('the variables that queries use are those the dashboard has', () => {
  const variables = dashboard.templating.list.map(({ name }) => name);
  const used = new Set(JSON.stringify(panels).match(/\$\{?[a-z_]+\}?/g));
  assert.deepEqual(
    [...used].map((name) => name.replaceAll(/[${}]/g, '')).sort(),
    [...variables, '__rate_interval'].sort(),
  );
});
