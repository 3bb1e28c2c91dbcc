import type { Millis } from '@switchyard/core';
import type { PodTimes, RolloutRecording } from './recording.ts';
import { svgElement as element, svgText as label } from '@switchyard/host';
import type { WatchReport } from './watch-report.ts';
import { sinceText } from './watch-text.ts';

const width = 1180;
const labelWidth = 300;
const barHeight = 16;
const rowHeight = 26;
const headHeight = 24;

interface Scale {
  readonly from: number;
  readonly to: number;
  readonly begin: Millis;
}

/**
 * The rollout as one SVG element: a row for each pod with marks for its EndpointSlice changes (above) and the nodes' applies (below), then
 * lost packets and requests. Its styles come from the page (`timelineStyle`).
 */
export function timelineSvg(report: WatchReport, recording: RolloutRecording): string {
  const scale = scaleOf(recording);
  const pods = report.pods.map((pod, row) => podRow(pod, { recording, scale, y: headHeight + row * rowHeight }));
  const lossRow = headHeight + pods.length * rowHeight;
  const losses = lossMarks(report, { scale, y: lossRow });
  const height = lossRow + 2 * rowHeight + 4;
  const name = `Rollout of Deployment ${report.deployment}`;
  const attributes = { class: 'timeline', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': name };
  return element('svg', attributes, axis(scale, height) + pods.join('') + losses);
}

function scaleOf({ begin, end, pods, slices, requests = [] }: RolloutRecording): Scale {
  const times = [
    ...pods.flatMap(({ created, ready, deleted, removed }) => [created, ready, deleted, removed]),
    ...slices.filter(({ isBefore }) => !isBefore).map(({ at }) => at),
    ...requests.filter(({ outcome }) => outcome !== 'answered').map(({ sentAt }) => sentAt),
    end,
    begin,
  ].filter((at) => at !== undefined);
  return { from: begin - 1000, to: times.reduce((a, b) => (a > b ? a : b), begin) + 1000, begin };
}

function pixelOf({ from, to }: Scale, at: number): number {
  const share = (at - from) / (to - from);
  return labelWidth + Math.min(1, Math.max(0, share)) * (width - labelWidth - 14);
}

interface RowContext {
  readonly scale: Scale;
  readonly y: number;
}

/** A pod's life as bars: created, ready, being deleted. */
function podRow(pod: PodTimes, { recording, scale, y }: RowContext & { readonly recording: RolloutRecording }): string {
  const { name, node, isFormer, addresses } = pod;
  const created = pod.created ?? scale.from;
  const ready = isFormer ? scale.from : (pod.ready ?? pod.deleted ?? scale.to);
  const deleted = pod.deleted ?? scale.to;
  const removed = pod.removed ?? scale.to;
  const bars = [
    bar(scale, { style: 'muted', title: `${name}: not ready`, from: created, to: Math.min(ready, deleted) }),
    bar(scale, { style: 'good', title: `${name}: ready`, from: ready, to: deleted }),
    bar(scale, { style: 'warn', title: `${name}: being deleted`, from: deleted, to: removed }),
  ];
  const isOwn = ({ address }: { readonly address: string }): boolean => addresses.includes(address);
  const changes = recording.slices
    .filter((one) => isOwn(one) && !one.isBefore)
    .map(({ at, condition }) =>
      mark(scale, { at, y: 0, style: 'slice', title: `EndpointSlice: ${condition}, ${sinceText(at, scale.begin)}` }),
    );
  const applies = recording.applies
    .filter((one) => isOwn(one) && one.at >= scale.from)
    .map(({ at, condition, node: on }) =>
      mark(scale, {
        at,
        y: barHeight,
        style: 'apply',
        title: `${on} applied: ${condition}, ${sinceText(at, scale.begin)}`,
      }),
    );
  const text = label(`${name} ${node ?? ''}`, { class: 'label', x: labelWidth - 10, y: 12 });
  const place = { class: 'pod', 'data-pod': name, transform: `translate(0 ${y})` };
  return element('g', place, [text, ...bars, ...changes, ...applies].join(''));
}

interface Bar {
  readonly style: string;
  readonly title: string;
  readonly from: number;
  readonly to: number;
}

function bar(scale: Scale, { style, title, from, to }: Bar): string {
  if (to <= from) return '';
  const x = pixelOf(scale, from);
  const size = { x, y: 0, width: Math.max(1, pixelOf(scale, to) - x), height: barHeight };
  const times = `${sinceText(from as Millis, scale.begin)} to ${sinceText(to as Millis, scale.begin)}`; // times of the recording
  return element('rect', { class: style, ...size }, '', `${title}, ${times}`);
}

interface Mark {
  readonly at: number;
  readonly y: number;
  readonly style: string;
  readonly title: string;
}

function mark(scale: Scale, { at, y, style, title }: Mark): string {
  return element(
    'path',
    { class: style, d: `M${pixelOf(scale, at).toFixed(1)} ${y - 4} l4 4 l-4 4 l-4 -4 z` },
    '',
    title,
  );
}

function lossMarks({ packets, requests }: WatchReport, { scale, y }: RowContext): string {
  const row = (name: string, top: number, marks: readonly string[]): string =>
    element(
      'g',
      { class: 'losses', transform: `translate(0 ${top})` },
      label(name, { class: 'label', x: labelWidth - 10, y: 12 }) + marks.join(''),
    );
  const tick = (at: Millis, title: string): string =>
    element('rect', { class: 'lost', x: pixelOf(scale, at), y: 0, width: 2, height: barHeight }, '', title);
  const lostPackets = packets.map(({ at, node, count, cause, why }) =>
    tick(at, `${sinceText(at, scale.begin)}: ${count} packets on ${node}, ${cause}: ${why}`),
  );
  const lostRequests = (requests?.lost ?? []).map(({ sentAt, outcome, cause, why }) =>
    tick(sentAt, `${sinceText(sentAt, scale.begin)}: ${outcome}, ${cause}: ${why}`),
  );
  return row('lost packets', y, lostPackets) + row('lost requests', y + rowHeight, lostRequests);
}

function axis(scale: Scale, height: number): string {
  const duration = (scale.to - scale.from) / 1000;
  const step = [1, 2, 5, 10, 30, 60, 120, 300].find((one) => duration / one <= 12) ?? 600;
  const count = Math.floor((scale.to - scale.begin) / 1000 / step) + 1;
  return Array.from({ length: count }, (_, index) => {
    const x = pixelOf(scale, scale.begin + index * step * 1000);
    const line = element('line', { class: 'grid', x1: x, x2: x, y1: 16, y2: height });
    return line + label(`${index * step} s`, { class: 'tick', x, y: 11 });
  }).join('');
}
