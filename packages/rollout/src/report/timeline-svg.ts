import type { Millis } from '@switchyard/core';
import { svgElement as element, svgText as text } from '@switchyard/host';
import { type Span, spansOf } from '../rollout-times.ts';
import type { RequestRecord, RunRecord, RunSummary } from '../run-record.ts';

const width = 1180;
const labelWidth = 190;
const barHeight = 18;
const rowGap = 8;
const headHeight = 34;

/** One line of the picture: a label and what is drawn at height 0 to `height`. */
interface Row {
  readonly label: string;
  readonly height: number;
  readonly marks: string;
  /** Opens a group: a thin rule and some air above. */
  readonly isFirstOfGroup?: boolean;
}

interface BarStyle {
  readonly style: string;
  readonly label: string;
}

/**
 * The timeline of one run as one SVG element: pods, endpoint conditions, applies, health checks, what HAProxy thinks (of these what was
 * observed), and every request, on one clock whose zero is the first old pod's deletionTimestamp. Shapes, text and class names only: its
 * styles come from the page (`timelineStyle`).
 */
export function timelineSvg(run: RunRecord, summary: RunSummary): string {
  const scale = scaleOf(run);
  const rows = rowsOf(run, summary, scale);
  const height = headHeight + rows.reduce((sum, row) => sum + rowHeight(row), 0) + 26;
  let y = headHeight;
  const drawn = rows.map((row) => {
    const top = y + (row.isFirstOfGroup ? rowGap : 0);
    const rule = row.isFirstOfGroup ? element('line', { class: 'rule', x1: 0, x2: width, y1: y + 1, y2: y + 1 }) : '';
    y += rowHeight(row);
    const label = text(row.label, { class: 'label', x: labelWidth - 12, y: top + row.height / 2 + 4 });
    return rule + label + element('g', { transform: `translate(0 ${top})` }, row.marks);
  });
  const body = axis(scale, height) + lossBand(summary, scale, height) + drawn.join('') + zeroLine(scale, height);
  const fallback = `the terminating fallback ${summary.terminatingFallback ? 'on' : 'off'}`;
  const name = `Timeline of the run with ${fallback}, by ${run.path.name}`;
  const attributes = { class: 'rollout-timeline', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': name };
  return element('svg', attributes, body);
}

function rowHeight(row: Row): number {
  return row.height + rowGap + (row.isFirstOfGroup ? rowGap : 0);
}

function scaleOf(run: RunRecord): Scale {
  const first = run.requests[0]?.sentAt ?? run.startedAt;
  const second = (at: number): number => (at - run.moves[0].deletedAt) / 1000;
  return {
    from: Math.max(second(first), -5 * run.settings.timeScale),
    to: second(run.endedAt),
    left: labelWidth,
    width: width - labelWidth - 14,
  };
}

function rowsOf(run: RunRecord, summary: RunSummary, scale: Scale): readonly Row[] {
  const window = { from: (run.moves[0].deletedAt + scale.from * 1000) as Millis, to: run.endedAt };
  const bars = (spans: readonly Span<BarStyle>[]): string => spans.map((span) => bar(run, scale, span)).join('');
  const nodeRows = <M extends { readonly at: Millis; readonly node: string }>(
    title: string,
    moments: readonly M[],
    styleOf: (moment: M) => BarStyle,
  ): Row[] =>
    (moments.length === 0 ? [] : run.nodes).map((node, index) => {
      const own = moments
        .filter((moment) => moment.node === node)
        .map((moment) => ({ at: moment.at, value: styleOf(moment) }));
      const marks = bars(spansOf(own, window));
      return { label: `${title} ${node}`, height: barHeight, marks, isFirstOfGroup: index === 0 };
    });
  return [
    ...podRows(run, window, bars),
    ...nodeRows('endpoint on', run.endpoints, (moment) => endpointStyles[moment.state]),
    ...(run.syncs === undefined ? [] : run.nodes.map((node, index) => syncRow(run, scale, node, index === 0))),
    ...nodeRows('health check', run.health, (moment) =>
      moment.status === 200
        ? { style: 'good', label: '200' }
        : { style: 'bad', label: moment.status === 0 ? 'no answer' : String(moment.status) },
    ),
    ...nodeRows('HAProxy sees', run.loadBalancer, (moment) =>
      moment.isUp ? { style: 'good', label: 'UP' } : { style: 'bad', label: 'DOWN' },
    ),
    requestRow(run, summary, scale),
  ];
}

const endpointStyles: Readonly<Record<RunRecord['endpoints'][number]['state'], BarStyle>> = {
  none: { style: 'none', label: '' },
  notReady: { style: 'muted', label: 'not ready' },
  ready: { style: 'good', label: 'ready' },
  servingTerminating: { style: 'warn', label: 'serving, terminating' },
  terminating: { style: 'bad', label: 'terminating' },
};

const podStyles: Readonly<Record<RunRecord['pods'][number]['phase'], BarStyle>> = {
  created: { style: 'muted', label: 'created' },
  started: { style: 'muted', label: 'created' },
  ready: { style: 'good', label: 'ready' },
  deleting: { style: 'warn', label: 'terminating, still serves' },
  sigterm: { style: 'warn', label: 'terminating, still serves' },
  ended: { style: 'bad', label: 'ended' },
  gone: { style: 'none', label: '' },
};

function podRows(
  run: RunRecord,
  window: { readonly from: Millis; readonly to: Millis },
  bars: (spans: readonly Span<BarStyle>[]) => string,
): Row[] {
  const pods = run.moves.flatMap(({ oldPod, newPod }) => [
    { ...oldPod, age: 'old' },
    { ...newPod, age: 'new' },
  ]);
  return pods.map((pod) => {
    const moments = run.pods
      .filter((moment) => moment.pod === pod.name)
      .map((moment) => ({ at: moment.at, value: podStyles[moment.phase] }));
    const label = `${pod.age} pod, ${pod.node}`;
    return { label, height: barHeight, marks: bars(spansOf(moments, window)) };
  });
}

function bar(run: RunRecord, scale: Scale, span: Span<BarStyle>): string {
  if (span.value.style === 'none') return '';
  const from = (span.from - run.moves[0].deletedAt) / 1000;
  const to = (span.to - run.moves[0].deletedAt) / 1000;
  const x = pixelOf(scale, from);
  const length = Math.max(1.5, pixelOf(scale, to) - x);
  const title = `${span.value.label}: ${seconds(from)} to ${seconds(to)}`;
  const place = { class: `bar ${span.value.style}`, x, y: 0, width: length, height: barHeight, rx: 3 };
  const box = element('rect', place, '', title);
  const fits = length > span.value.label.length * 6.6 + 10;
  return box + (fits ? text(span.value.label, { class: `in ${span.value.style}`, x: x + 6, y: 13 }) : '');
}

function syncRow(run: RunRecord, scale: Scale, node: string, isFirstOfGroup: boolean): Row {
  const marks = (run.syncs ?? [])
    .filter((sync) => sync.node === node)
    .map((sync) => {
      const at = (sync.at - run.moves[0].deletedAt) / 1000;
      if (at < scale.from || at > scale.to) return '';
      const x = pixelOf(scale, at);
      const title = `${node} applied ${sync.writes} write(s) in ${sync.duration.toFixed(1)} ms at ${seconds(at)}`;
      return element('path', { class: 'sync', d: `M${x.toFixed(1)} 2 l5 7 l-5 7 l-5 -7 z` }, '', title);
    });
  return { label: `agent applies, ${node}`, height: barHeight, marks: marks.join(''), isFirstOfGroup };
}

/** Three lanes: answered by the old pod, answered by the new pod, lost. */
function requestRow(run: RunRecord, summary: RunSummary, scale: Scale): Row {
  const causes = new Map(summary.losses.map(({ sequence, seen, cause }) => [sequence, seen?.why ?? causeText(cause)]));
  const lanes = ['old pod', 'new pod', 'lost'] as const;
  const oldPods = new Set(run.moves.map(({ oldPod }) => oldPod.name));
  const laneOf = (request: RequestRecord): number =>
    request.outcome !== 'answered' ? 2 : oldPods.has(request.answeredBy ?? '') ? 0 : 1;
  const styles = ['old', 'new', 'lost'];
  const marks = run.requests.flatMap((request) => {
    const at = (request.sentAt - run.moves[0].deletedAt) / 1000;
    if (at < scale.from) return [];
    const lane = laneOf(request);
    const x = pixelOf(scale, at);
    const y = lane * 18 + 2;
    const title = `request ${request.sequence} at ${seconds(at)}: ${lane === 2 ? `lost (${request.outcome}): ${causes.get(request.sequence) ?? ''}` : `answered by the ${lanes[lane]} after ${(request.doneAt - request.sentAt).toFixed(1)} ms`}`;
    return element(
      'rect',
      { class: `request ${styles[lane] ?? ''}`, x: x - 0.8, y, width: 1.6, height: 14 },
      '',
      title,
    );
  });
  const labels = lanes.map((lane, index) => text(lane, { class: 'lane', x: scale.left - 8, y: index * 18 + 13 }));
  return { label: '', height: 54, marks: labels.join('') + marks.join(''), isFirstOfGroup: true };
}

function axis(scale: Scale, height: number): string {
  return ticksOf(scale, 12)
    .map((tick) => {
      const x = pixelOf(scale, tick);
      const label = `${Number(tick.toFixed(2))} s`;
      return (
        element('line', { class: 'grid', x1: x, x2: x, y1: headHeight - 6, y2: height - 20 }) +
        text(label, { class: 'tick', x, y: height - 6 })
      );
    })
    .join('');
}

function zeroLine(scale: Scale, height: number): string {
  const x = pixelOf(scale, 0);
  const line = element('line', { class: 'zero', x1: x, x2: x, y1: 20, y2: height - 20 });
  return line + text('old pod is being deleted', { class: 'zero-label', x: x + 5, y: 16 });
}

function lossBand(summary: RunSummary, scale: Scale, height: number): string {
  if (summary.lossWindow === undefined) return '';
  const x = pixelOf(scale, summary.lossWindow.from);
  const end = pixelOf(scale, summary.lossWindow.to);
  const size = { width: Math.max(2, end - x), height: height - headHeight - 12 };
  const box = element('rect', { class: 'loss', x, y: headHeight - 8, ...size });
  const label = `${summary.lost} requests lost in ${summary.lossWindowSeconds.toFixed(1)} s`;
  return box + text(label, { class: 'loss-label', x: Math.max(x, pixelOf(scale, 0) + 190), y: 16 });
}

function seconds(value: number): string {
  return `${value >= 0 ? '+' : ''}${value.toFixed(3)} s`;
}

/** Maps seconds to pixels. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly left: number;
  readonly width: number;
}

/** The pixel of a time, clamped to the picture. */
export function pixelOf(scale: Scale, second: number): number {
  const share = (second - scale.from) / (scale.to - scale.from);
  return scale.left + Math.min(1, Math.max(0, share)) * scale.width;
}

/** Round tick positions, about `wanted` of them. */
export function ticksOf(scale: Scale, wanted: number): readonly number[] {
  const rough = (scale.to - scale.from) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power * 10;
  const ticks: number[] = [];
  for (let index = Math.ceil(scale.from / step); index * step <= scale.to + 1e-9; index++) ticks.push(index * step);
  return ticks;
}

const causeTexts: Readonly<Record<string, string>> = {
  droppedByNodeAlone: 'dropped by the node, no other UP',
  droppedByNodeShared: 'dropped by the node, half of the traffic',
  noServerUp: 'no server UP',
  appGone: 'app gone',
  unexplained: 'unexplained',
};

/** A cause in words. */
export function causeText(cause: string): string {
  return causeTexts[cause] ?? cause;
}
