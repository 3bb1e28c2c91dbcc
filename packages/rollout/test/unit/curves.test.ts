import { expect, test } from 'vitest';
import { curvesSvg, exponentOf, type Measured, panelsOf } from '../../bench/curves.ts';
import type { SizeFigures } from '../../bench/measure.ts';
import { rows } from '../../bench/targets.ts';

const at = (endpoints: number, value: number) => ({ endpoints, value });

test.each([
  ['does not grow', 0, [at(1000, 5), at(10_000, 5), at(100_000, 5)]],
  ['grows as the endpoints', 1, [at(1000, 1), at(10_000, 10), at(240_000, 240)]],
  ['grows as their square', 2, [at(10, 4), at(20, 16)]],
  ['grows as their root', 0.5, [at(100, 10), at(10_000, 100)]],
])('a figure that %s has the exponent %d', (_, exponent, points) => {
  expect(exponentOf(points)).toBeCloseTo(exponent);
});

const measuredAt = (mode: string, endpoints: number, coldStart: number): Measured => ({
  mode,
  endpoints,
  figures: {
    coldStarts: [coldStart],
    idleCpu: Number.NaN,
    received: [0],
  } satisfies Partial<SizeFigures> as Partial<SizeFigures> as SizeFigures,
});
const measured = [
  ...['nftables', 'ebpf'].flatMap((mode, index) =>
    [10_000, 1000, 100_000].map((endpoints) => measuredAt(mode, endpoints, endpoints / 100 + index)),
  ),
  measuredAt('kube-proxy nftables', 10_000, 880),
  measuredAt('kube-proxy nftables', 50_000, 5500),
];
const panels = panelsOf(
  measured,
  rows.filter(({ what }) => ['cold start', 'idle CPU', 'received in a cold start'].includes(what)),
);

test('a panel has a curve of each mode in the order of sizes; what was not measured has no panel', () => {
  const [start, ...others] = panels;
  expect(others).toEqual([]);
  expect(start?.title).toBe('cold start, ms');
  expect(start?.curves.map(({ name, points }) => [name, points.map(({ endpoints }) => endpoints)])).toEqual([
    ['nftables', [1000, 10_000, 100_000]],
    ['ebpf', [1000, 10_000, 100_000]],
    ['kube-proxy nftables', [10_000, 50_000]],
  ]);
  expect(start?.curves[2]?.points).toEqual([at(10_000, 880), at(50_000, 5500)]);
});

test('the picture has a line for each curve, and says its last value and exponent', () => {
  const svg = curvesSvg(panels);
  expect(svg.match(/<path class="line own\d" d="M46/g)).toHaveLength(2);
  expect(svg).toContain('>1k (n^1.00)<');
  expect(svg).toContain('>5.5k (n^1.14)<');
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});
