import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { dashboard } from './dashboard.ts';
import { dashboardFile, pictureFile } from './generate.ts';
import type { AnyPanel } from './panels.ts';
import { dashboardPicture } from './picture.ts';
import { rows } from './rows.ts';

const panels = (dashboard().panels ?? []) as readonly AnyPanel[];
const places = panels.map(({ title, gridPos }) => ({ title, ...(gridPos ?? { x: 0, y: 0, w: 0, h: 0 }) }));

test('the file is what the description makes; else run: node tools/grafana/generate.ts', () => {
  assert.deepEqual(JSON.parse(readFileSync(dashboardFile, 'utf8')), dashboard());
});

test('so is its picture', () => {
  assert.equal(readFileSync(pictureFile, 'utf8'), dashboardPicture(rows));
});

test('it has a schema Grafana 10 and later migrate from, a fixed uid, and no database id', () => {
  const { schemaVersion, uid, id } = dashboard();
  assert.ok(schemaVersion >= 36);
  assert.equal(uid, 'switchyard');
  assert.equal(id, undefined);
});

test('every panel of the description is there, once, and has a title, a description, a unit and queries', () => {
  const titles = rows.flatMap((row) => [row.title, ...row.panels.map((panel) => panel.title)]);
  assert.deepEqual(
    panels.map(({ title }) => title),
    titles,
  );
  assert.equal(new Set(titles).size, titles.length);
  for (const { title, description, unit, queries } of rows.flatMap((row) => row.panels)) {
    assert.ok(description.endsWith('.') && unit !== '' && queries.length > 0, title);
  }
});

test('ids are unique', () => {
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
});

test('no panel covers another, and all are inside the 24 columns', () => {
  for (const [index, a] of places.entries()) {
    assert.ok(a.w > 0 && a.h > 0 && a.x >= 0 && a.x + a.w <= 24, a.title);
    for (const b of places.slice(index + 1)) {
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(isApart, `${a.title} covers ${b.title}`);
    }
  }
});

test('every query has a letter of its own, the chosen data source and the chosen agents', () => {
  for (const panel of panels) {
    if (!('targets' in panel)) continue;
    const targets = (panel.targets ?? []) as readonly Readonly<Record<string, unknown>>[];
    assert.equal(new Set(targets.map((target) => target['refId'])).size, targets.length);
    for (const { expr, datasource } of targets) {
      assert.deepEqual(datasource, { type: 'prometheus', uid: '${datasource}' });
      const text = String(expr);
      const selectors = text.match(/\{[^}]*\}/g) ?? [];
      assert.ok(selectors.length > 0, text);
      for (const one of selectors) assert.match(one, /job=~"\$job",instance=~"\$instance"/);
      assert.ok(!text.includes('$sel'), text);
    }
  }
});

test('the variables that queries use are those the dashboard has', () => {
  const variables = (dashboard().templating?.list ?? []).map(({ name }) => name);
  const used = new Set(JSON.stringify(panels).match(/\$\{?[a-z_]+\}?/g));
  assert.deepEqual(
    [...used].map((name) => name.replaceAll(/[${}]/g, '')).sort(),
    [...variables, '__rate_interval'].sort(),
  );
});
