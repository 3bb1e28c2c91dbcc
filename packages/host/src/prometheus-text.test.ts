import { describe, expect, test } from 'vitest';
import { familyText, formatFor, labelText, type MetricFamily, type MetricsFormat } from './prometheus-text.ts';

const lines = (family: MetricFamily, format: MetricsFormat = 'text'): readonly string[] =>
  [...familyText(family, format)].join('').trimEnd().split('\n');

const gauge = (value: number, labels = '', help = 'Help'): MetricFamily => ({
  type: 'gauge',
  name: 'some_gauge',
  help,
  series: [{ labels, value }],
});

describe('label values', () => {
  test.each([
    ['plain', 'plain'],
    ['', ''],
    ['with "quotes"', 'with \\"quotes\\"'],
    ['back\\slash', 'back\\\\slash'],
    ['two\nlines', 'two\\nlines'],
    ['\\n', '\\\\n'],
    ['ü 雪 {}=,', 'ü 雪 {}=,'],
  ])('%j is written as %j', (value, expected) => {
    expect(labelText(['a'], [value])).toBe(`a="${expected}"`);
  });

  test('are written in the order given', () => {
    expect(labelText(['a', 'b', 'c'], ['1', '2', '3'])).toBe('a="1",b="2",c="3"');
  });
});

describe('values', () => {
  test.each([
    [0, '0'],
    [1, '1'],
    [-1.5, '-1.5'],
    [0.1 + 0.2, '0.30000000000000004'],
    [1_764_000_000.123, '1764000000.123'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [Number.NaN, 'NaN'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
  ])('%d is written as %s', (value, expected) => {
    expect(lines(gauge(value)).at(-1)).toBe(`some_gauge ${expected}`);
  });
});

describe('help', () => {
  test.each([
    ['text', 'a "b" \\\\ c\\nd'],
    ['openmetrics', 'a \\"b\\" \\\\ c\\nd'],
  ] as const)('is escaped as %s wants it', (format, expected) => {
    expect(lines(gauge(1, '', 'a "b" \\ c\nd'), format)[0]).toBe(`# HELP some_gauge ${expected}`);
  });
});

describe('a counter', () => {
  const counter: MetricFamily = {
    type: 'counter',
    name: 'cpu_seconds_total',
    help: 'Help',
    series: [
      { labels: '', value: 2 },
      { labels: 'a="b"', value: 3 },
    ],
  };

  test('has its whole name everywhere in the text format', () => {
    expect(lines(counter)).toEqual([
      '# HELP cpu_seconds_total Help',
      '# TYPE cpu_seconds_total counter',
      'cpu_seconds_total 2',
      'cpu_seconds_total{a="b"} 3',
    ]);
  });

  test('is declared without _total, and with its unit, in OpenMetrics', () => {
    expect(lines(counter, 'openmetrics')).toEqual([
      '# HELP cpu_seconds Help',
      '# TYPE cpu_seconds counter',
      '# UNIT cpu_seconds seconds',
      'cpu_seconds_total 2',
      'cpu_seconds_total{a="b"} 3',
    ]);
  });
});

test.each(['text', 'openmetrics'] as const)(
  'a histogram adds up its buckets and ends with sum and count: %s',
  (format) => {
    const histogram: MetricFamily = {
      type: 'histogram',
      name: 'wait_seconds',
      help: 'Help',
      bounds: [0.001, 1, 16.384],
      series: [
        { labels: 'f="4"', counts: Float64Array.of(1, 0, 2, 3), sum: 99.5 },
        { labels: '', counts: Float64Array.of(0, 0, 0, 0), sum: 0 },
      ],
    };
    expect(lines(histogram, format).filter((line) => !line.startsWith('#'))).toEqual([
      'wait_seconds_bucket{f="4",le="0.001"} 1',
      'wait_seconds_bucket{f="4",le="1"} 1',
      'wait_seconds_bucket{f="4",le="16.384"} 3',
      'wait_seconds_bucket{f="4",le="+Inf"} 6',
      'wait_seconds_sum{f="4"} 99.5',
      'wait_seconds_count{f="4"} 6',
      'wait_seconds_bucket{le="0.001"} 0',
      'wait_seconds_bucket{le="1"} 0',
      'wait_seconds_bucket{le="16.384"} 0',
      'wait_seconds_bucket{le="+Inf"} 0',
      'wait_seconds_sum 0',
      'wait_seconds_count 0',
    ]);
  },
);

test('a family without series has no text', () => {
  expect([...familyText({ type: 'gauge', name: 'none', help: 'Help', series: [] }, 'text')]).toEqual([]);
});

test('many series come in pieces, with one head', () => {
  const series = Array.from({ length: 2500 }, (_, index) => ({ labels: `i="${index}"`, value: index }));
  const pieces = [...familyText({ type: 'gauge', name: 'many', help: 'Help', series }, 'text')];
  expect(pieces.map((piece) => piece.split('\n').length - 1)).toEqual([1002, 1000, 500]);
});

const prometheus2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const prometheus3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';

describe('the format', () => {
  test.each([
    ['nothing', undefined, 'text'],
    ['an empty header', '', 'text'],
    ['curl', '*/*', 'text'],
    ['a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', 'text'],
    ['Prometheus 2', prometheus2, 'openmetrics'],
    ['Prometheus 3', prometheus3, 'openmetrics'],
    ['OpenMetrics with a quoted version', 'application/openmetrics-text; version="1.0.0"', 'openmetrics'],
    ['OpenMetrics without a version', 'application/openmetrics-text', 'openmetrics'],
    ['an older OpenMetrics only', 'application/openmetrics-text;version=0.0.1,text/plain;q=0.5', 'text'],
    ['OpenMetrics as the lesser evil', 'text/plain, application/openmetrics-text; q=0.5', 'text'],
    ['OpenMetrics by no means', 'application/openmetrics-text;q=0', 'text'],
  ] as const)('for %s', (_, accept, expected) => {
    expect(formatFor(accept)).toBe(expected);
  });
});
