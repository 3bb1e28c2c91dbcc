import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { ownMetrics } from '@switchyard/core';
import { parse } from 'yaml';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const file = new URL('../../deploy/prometheus/switchyard-rules.yaml', import.meta.url);
const { groups } = parse(readFileSync(file, 'utf8')) as {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const metrics = new Map<string, readonly string[]>(
  Object.values(ownMetrics).flatMap((kind) =>
    Object.entries(kind).map(([name, { labels }]) => [name, labels] as const),
  ),
);

test('an agent that does not hear the API server has an alert', () => {
  const alert = alerts.find(({ expr }) => expr.includes('switchyard_source_lag_seconds'));
  assert.equal(alert?.alert, 'SwitchyardSourceSilent');
  assert.match(alert.expr, /> 150$/);
});

test('every alert is about metrics and labels that there are, and has a severity and texts', () => {
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length);
  for (const { alert, expr, labels, annotations, for: duration } of alerts) {
    const named = expr.match(/switchyard_\w+/g) ?? [];
    assert.ok(named.length > 0, alert);
    const known = new Set([
      'instance',
      ...named.flatMap((name) => metrics.get(name) ?? assert.fail(`no metric ${name}`)),
    ]);
    const used = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
    const shown = [
      ...Object.values(annotations)
        .join()
        .matchAll(/\$labels\.(\w+)/g),
    ].map(([, label = '']) => label);
    for (const label of [...used, ...shown]) assert.ok(known.has(label), `${alert}: ${label}`);
    for (const label of shown) assert.ok(used.includes(label), `${alert}: ${label} is not in the result`);
    assert.match(duration, /^\d+m$/);
    assert.ok(labels['severity'] !== undefined && annotations['summary'] !== undefined, alert);
  }
});
