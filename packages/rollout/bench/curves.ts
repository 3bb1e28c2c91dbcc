import { svgElement as element, svgText as text } from '@switchyard/host';
import type { Row } from './targets.ts';
import type { SizeFigures } from './measure.ts';

/** A figure at one size. */
export interface Point {
  readonly endpoints: number;
  readonly value: number;
}

/** A figure of one proxy at several sizes, in their order. */
export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Panel {
  readonly title: string;
  readonly curves: readonly Curve[];
}

/** All figures of one cluster and mode. */
export interface Measured {
  readonly mode: string;
  readonly endpoints: number;
  readonly figures: SizeFigures;
}

/** One panel per figure, with a curve for each mode. */
export function panelsOf(measured: readonly Measured[], rows: readonly Row[]): readonly Panel[] {
  const modes = Map.groupBy(measured, ({ mode }) => mode);
  return rows
    .map(({ what, unit, of }) => {
      const curves = [...modes].map(([name, sizes]) =>
        sorted({ name, points: sizes.map(({ endpoints, figures }) => ({ endpoints, value: of(figures) })) }),
      );
      return { title: `${what}, ${unit}`, curves: curves.filter(({ points }) => points.length > 1) };
    })
    .filter(({ curves }) => curves.length > 0);
}

function sorted({ name, points }: Curve): Curve {
  const drawn = points.filter(({ value }) => value > 0).toSorted((a, b) => a.endpoints - b.endpoints);
  return { name, points: drawn };
}

/** The power of the number of endpoints with which a figure grows: the slope of the line through the logarithms of its points. */
export function exponentOf(points: readonly Point[]): number {
  const xs = points.map(({ endpoints }) => Math.log(endpoints));
  const ys = points.map(({ value }) => Math.log(value));
  const [x, y] = [mean(xs), mean(ys)];
  const covariance = mean(xs.map((one, index) => (one - x) * ((ys[index] ?? y) - y)));
  return covariance / mean(xs.map((one) => (one - x) ** 2));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const columns = 3;
const cell = { width: 330, height: 250 } as const;
/** The drawn area in a cell. */
const area = { left: 46, right: 100, top: 34, bottom: 34 } as const;
const head = 30;

/** A picture for a page in light or dark: both axes logarithmic, so that a line's slope is its exponent. */
export function curvesSvg(panels: readonly Panel[]): string {
  const names = [...new Set(panels.flatMap(({ curves }) => curves.map(({ name }) => name)))];
  const width = columns * cell.width;
  const height = head + Math.ceil(panels.length / columns) * cell.height;
  const legend = names.map((name, index) => {
    const x = 16 + index * 170;
    const line = element('path', { class: `line ${styleOf(names, name)}`, d: `M${x} 18h22` });
    return line + text(name, { x: x + 28, y: 22 });
  });
  const note = text('by endpoints; behind each line its last value and its exponent', {
    class: 'soft end',
    x: width - 16,
    y: 22,
  });
  const drawn = panels.map((panel, index) => {
    const x = (index % columns) * cell.width;
    const y = head + Math.floor(index / columns) * cell.height;
    return element('g', { transform: `translate(${x} ${y})` }, panelOf(panel, names));
  });
  const card = element('rect', { class: 'card', x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 });
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'aria-label': 'Figures of the agent by the number of endpoints',
  };
  return `${element('svg', attributes, [element('style', {}, style), card, ...legend, note, ...drawn].join('\n'))}\n`;
}

function styleOf(names: readonly string[], name: string): string {
  return name.startsWith('kube-proxy') ? 'theirs' : `own${names.indexOf(name)}`;
}

function panelOf({ title, curves }: Panel, names: readonly string[]): string {
  const points = curves.flatMap((curve) => curve.points);
  const right = cell.width - area.right;
  const bottom = cell.height - area.bottom;
  const x = scaleOf(
    points.map(({ endpoints }) => endpoints),
    [area.left, right],
  );
  const y = scaleOf(
    points.map(({ value }) => value),
    [bottom, area.top],
  );
  const grid = [
    ...y.ticks.map((tick) => {
      const at = y.at(tick);
      const line = element('path', { class: 'grid', d: `M${area.left} ${at.toFixed(1)}H${right}` });
      return line + text(shortNumber(tick), { class: 'soft end', x: area.left - 6, y: at + 4 });
    }),
    ...x.ticks.map((tick) => text(shortNumber(tick), { class: 'soft mid', x: x.at(tick), y: bottom + 18 })),
  ];
  const labels = apart(curves.map(({ points: own }) => y.at(own.at(-1)?.value ?? 1)));
  const lines = curves.map(({ name, points: own }, index) => {
    const styles = styleOf(names, name);
    const way = own.map(({ endpoints, value }) => `${x.at(endpoints).toFixed(1)} ${y.at(value).toFixed(1)}`);
    const dots = way.map((place) => element('path', { class: `dot ${styles}`, d: `M${place}h0` }));
    const label = `${shortNumber(own.at(-1)?.value ?? 0)} (n^${exponentOf(own).toFixed(2)})`;
    return [
      element('path', { class: `line ${styles}`, d: `M${way.join('L')}` }),
      ...dots,
      text(label, { class: styles, x: right + 8, y: (labels[index] ?? 0) + 4 }),
    ].join('');
  });
  return [text(title, { class: 'head', x: 16, y: 20 }), ...grid, ...lines].join('');
}

/** Keeps labels a line apart, in their order from the top. */
function apart(places: readonly number[]): readonly number[] {
  const moved = [...places];
  let above = -Infinity;
  for (const index of places
    .keys()
    .toArray()
    .toSorted((a, b) => (places[a] ?? 0) - (places[b] ?? 0))) {
    above = Math.max(places[index] ?? 0, above + 14);
    moved[index] = above;
  }
  return moved;
}

interface LogScale {
  at(value: number): number;
  /** Powers of ten, and with less than two of them some in between. */
  readonly ticks: readonly number[];
}

function scaleOf(values: readonly number[], [from, to]: readonly [number, number]): LogScale {
  const [low, high] = [Math.min(...values), Math.max(...values, Math.min(...values) * 2)];
  const span = Math.log(high / low);
  const candidates = [1, 2, 5].map((step) =>
    Array.from({ length: 16 }, (_, power) => step * 10 ** (power - 6)).filter((tick) => tick >= low && tick <= high),
  );
  const [powers = []] = candidates;
  return {
    at: (value) => from + (Math.log(value / low) / span) * (to - from),
    ticks: powers.length >= 2 ? powers : candidates.flat().toSorted((a, b) => a - b),
  };
}

function shortNumber(value: number): string {
  if (value >= 1000) return `${Number((value / 1000).toFixed(value < 10_000 ? 1 : 0))}k`;
  return `${Number(value.toPrecision(2))}`;
}

const style = [
  'text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }',
  '.card { fill: #ffffff; stroke: #d1d9e0 } .head { font-weight: 600 } .soft { fill: #59636e } .mid { text-anchor: middle } .end { text-anchor: end }',
  '.grid { stroke: #d1d9e0 } .line { fill: none; stroke-width: 2 } .dot { stroke-width: 6; stroke-linecap: round }',
  '.own0 { stroke: #0969da } .own1 { stroke: #bc4c00 } .own2 { stroke: #1a7f37 } .theirs { stroke: #818b98 } .line.theirs { stroke-dasharray: 4 3 }',
  'text.own0 { fill: #0969da } text.own1 { fill: #bc4c00 } text.own2 { fill: #1a7f37 } text.theirs { fill: #59636e } text[class] { stroke: none }',
  '@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .card { fill: #0d1117; stroke: #3d444d } .soft { fill: #9198a1 } .grid { stroke: #3d444d }',
  '.own0 { stroke: #58a6ff } .own1 { stroke: #f0883e } .own2 { stroke: #3fb950 } .theirs { stroke: #656c76 }',
  'text.own0 { fill: #58a6ff } text.own1 { fill: #f0883e } text.own2 { fill: #3fb950 } text.theirs { fill: #9198a1 } text[class] { stroke: none } }',
].join('\n');
