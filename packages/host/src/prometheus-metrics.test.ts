import { InvariantError, type MetricDeclarations, metricDeclarations } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { createPrometheusMetrics, type PrometheusMetrics } from './prometheus-metrics.ts';
import { familyText } from './prometheus-text.ts';

const declarations = Object.values(metricDeclarations);

function text(metrics: PrometheusMetrics): readonly string[] {
  return metrics
    .families()
    .flatMap((family) => [...familyText(family, 'text')])
    .join('')
    .split('\n');
}

const create = (...ipFamilies: readonly ('IPv4' | 'IPv6')[]): PrometheusMetrics =>
  createPrometheusMetrics({ declarations, ipFamilies });

describe('from the start', () => {
  test.each([
    ['a counter by family', 'switchyard_apply_writes_total{ip_family="IPv6"} 0'],
    ['a counter by family and value', 'switchyard_drift_total{ip_family="IPv4",kind="table"} 0'],
    ['a counter without labels', 'kubeproxy_sync_proxy_rules_service_changes_total 0'],
    ['a gauge', 'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="internal"} 0'],
    ['a histogram', 'kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 0'],
  ])('%s shows as 0', (_, line) => {
    expect(text(create('IPv4', 'IPv6'))).toContain(line);
  });

  test('nothing shows for a family the node has not', () => {
    expect(text(create('IPv4')).filter((line) => line.includes('IPv6'))).toEqual([]);
  });

  test.each(['rest_client_requests_total', 'kubeproxy_sync_proxy_rules_last_timestamp_seconds'])(
    '%s is not there: its labels are unknown, or 0 would be a lie',
    (name) => {
      expect(text(create('IPv4')).filter((line) => line.includes(name))).toEqual([]);
    },
  );
});

describe('measuring', () => {
  test('adds to counters and sets gauges, each series separately', () => {
    const metrics = create('IPv4', 'IPv6');
    metrics.add('switchyard_apply_writes_total', { ip_family: 'IPv4' }, 3);
    metrics.add('switchyard_apply_writes_total', { ip_family: 'IPv4' });
    metrics.set('switchyard_failed_services', { ip_family: 'IPv6' }, 7);
    metrics.set('switchyard_failed_services', { ip_family: 'IPv6' }, 2);
    expect(text(metrics)).toEqual(
      expect.arrayContaining([
        'switchyard_apply_writes_total{ip_family="IPv4"} 4',
        'switchyard_apply_writes_total{ip_family="IPv6"} 0',
        'switchyard_failed_services{ip_family="IPv6"} 2',
      ]),
    );
  });

  test('keeps series apart whose label values only look alike when joined', () => {
    const metrics = create();
    metrics.add('rest_client_requests_total', { code: '200', host: 'ab', method: 'c' });
    metrics.add('rest_client_requests_total', { code: '200', host: 'a', method: 'bc' });
    expect(text(metrics)).toEqual(
      expect.arrayContaining([
        'rest_client_requests_total{code="200",host="ab",method="c"} 1',
        'rest_client_requests_total{code="200",host="a",method="bc"} 1',
      ]),
    );
  });

  const bound = (le: string): RegExp =>
    new RegExp(`^kubeproxy_sync_proxy_rules_duration_seconds_bucket\\{ip_family="IPv4",le="${le}"\\} (\\d+)$`);

  test.each([
    ['on a bound falls into that bucket', 0.001, '0.001', 1],
    ['just above falls into the next', 0.0011, '0.001', 0],
    ['just above falls into the next', 0.0011, '0.002', 1],
    ['beyond the last bound falls into none of them', 17, '16\\.384', 0],
    ['beyond the last bound is counted', 17, '\\+Inf', 1],
    ['of 0 falls into the first', 0, '0.001', 1],
  ])('a duration %s: %d s, bucket %s', (_, value, le, count) => {
    const metrics = create('IPv4');
    metrics.observe('kubeproxy_sync_proxy_rules_duration_seconds', { ip_family: 'IPv4' }, value);
    const found = text(metrics).flatMap((line) => bound(le).exec(line)?.[1] ?? []);
    expect(found).toEqual([String(count)]);
    expect(text(metrics)).toContain(`kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} ${value}`);
  });

  test.each([
    ['an undeclared metric', 'no_such_metric', {}],
    ['a missing label', 'switchyard_apply_writes_total', {}],
  ])('%s is a defect', (_, name, labels) => {
    const metrics = create('IPv4') as unknown as { add(name: string, labels: object): void };
    expect(() => metrics.add(name, labels)).toThrow(InvariantError);
  });
});

test('families are sorted by name across declarations', () => {
  const names = create('IPv4')
    .families()
    .map((family) => family.name);
  expect(names).toEqual([...names].sort());
});

describe('declarations', () => {
  const all = declarations.flatMap((one: MetricDeclarations) =>
    Object.entries({ ...one.counters, ...one.gauges, ...one.histograms, ...one.collected }),
  );
  const counters = declarations.flatMap((one) => [
    ...Object.keys(one.counters),
    ...Object.entries(one.collected).flatMap(([name, { type }]) => (type === 'counter' ? [name] : [])),
  ]);

  test('have names of their own', () => {
    const names = all.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(all)('%s has labels in the order of the alphabet, and help without a full stop', (_, one) => {
    expect(one.labels).toEqual([...one.labels].sort());
    expect(one.help).toMatch(/^[^\n]*[^.\n]$/);
  });

  test.each(counters)('%s ends with _total, as counters must', (name) => {
    expect(name).toMatch(/_total$/);
  });
});
