import type { RolloutTimeline } from '../../model/report-file.ts';
import { element, escapeMarkup } from '../markup.ts';
import { safeSvg } from './safe-svg.ts';

const width = 1180;
const labelWidth = 190;
const headHeight = 22;
const laneHeight = 26;
const requestHeight = 20;
/** Pixels that one mark of requests is wide; all requests within are one mark. */
const binWidth = 2;

/** The picture of a rolling update: the experiment's own if it has one that may be shown, else drawn from outcomes and events. */
export function rolloutSvg(timeline: RolloutTimeline): string {
  return (timeline.svg === undefined ? undefined : safeSvg(timeline.svg)) ?? drawnSvg(timeline);
}

interface Axis {
  readonly from: number;
  readonly to: number;
}

function drawnSvg(timeline: RolloutTimeline): string {
  const { events, outcomes, title } = timeline;
  const axis = axisOf(timeline);
  const lanes = [...Map.groupBy(events, ({ lane }) => lane)];
  const answers = answerLanes(outcomes);
  const height = headHeight + lanes.length * laneHeight + answers.length * requestHeight + 34;
  const drawnLanes = lanes.map(([lane, some], index) =>
    laneRow(axis, { label: lane, y: headHeight + index * laneHeight, events: some }),
  );
  const top = headHeight + lanes.length * laneHeight + 8;
  const drawnAnswers = answers.map((lane, index) => requestRow(axis, lane, top + index * requestHeight));
  const rule = element('line', { class: 'rule', x1: 0, x2: width, y1: top - 4, y2: top - 4 });
  const body = gridOf(axis, height) + drawnLanes.join('') + rule + drawnAnswers.join('');
  return element(
    'svg',
    { class: 'rollout-timeline', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Timeline: ${title}` },
    body,
  );
}

function axisOf({ events, outcomes }: RolloutTimeline): Axis {
  const times = [...events.map(({ at }) => at), ...outcomes.map(([at]) => at)];
  const from = times.reduce((least, at) => Math.min(least, at), 0);
  const to = times.reduce((most, at) => Math.max(most, at), from + 1);
  return { from, to };
}

function pixelOf({ from, to }: Axis, at: number): number {
  return labelWidth + ((at - from) / (to - from)) * (width - labelWidth - 14);
}

interface AnswerLane {
  readonly name: string;
  readonly style: string;
  readonly times: readonly number[];
}

/** Words for requests that were not answered; other outcomes name the answering endpoint. */
const lostWords = /^(?:lost|timeout|refused|reset|closed|error|failed|unanswered|noanswer|status)/i;

/** One lane per answering endpoint, in order of their first answer, and one for what was lost. */
function answerLanes(outcomes: RolloutTimeline['outcomes']): readonly AnswerLane[] {
  const byOutcome = Map.groupBy(outcomes, ([, outcome]) => outcome);
  const timesOf = (some: RolloutTimeline['outcomes']): readonly number[] => some.map(([at]) => at);
  const answered = [...byOutcome].filter(([outcome]) => !lostWords.test(outcome));
  const lost = [...byOutcome].filter(([outcome]) => lostWords.test(outcome));
  return [
    ...answered.map(([name, some], index) => ({ name, style: `a${index % 4}`, times: timesOf(some) })),
    ...lost.map(([name, some]) => ({ name, style: 'lost', times: timesOf(some) })),
  ];
}

function laneRow(
  axis: Axis,
  { label, y, events }: { readonly label: string; readonly y: number; readonly events: RolloutTimeline['events'] },
): string {
  const marks = events.map(({ at, text }, index) => {
    const x = pixelOf(axis, at);
    const mark = element(
      'path',
      { class: 'sync', d: `M${x.toFixed(1)} ${y + 6} l5 7 l-5 7 l-5 -7 z` },
      element('title', {}, escapeMarkup(`${seconds(at)}: ${text}`)),
    );
    const next = events[index + 1];
    const end = next === undefined ? width : pixelOf(axis, next.at) - 6;
    const hasRoom = x + 12 + text.length * 6.4 < end;
    return hasRoom ? mark + element('text', { x: x + 9, y: y + 17 }, escapeMarkup(text)) : mark;
  });
  return element('text', { class: 'label', x: labelWidth - 12, y: y + 17 }, escapeMarkup(label)) + marks.join('');
}

function requestRow(axis: Axis, { name, style, times }: AnswerLane, y: number): string {
  const bins = Map.groupBy(times, (at) => Math.floor((pixelOf(axis, at) - labelWidth) / binWidth));
  const marks = [...bins].map(([bin, some]) => {
    const title = `${some.length} ${name} at ${seconds(some[0] ?? 0)}`;
    const place = { x: labelWidth + bin * binWidth, y: y + 2, width: binWidth - 0.4, height: 15 };
    return element('rect', { class: `request ${style}`, ...place }, element('title', {}, escapeMarkup(title)));
  });
  const label = element(
    'text',
    { class: 'label', x: labelWidth - 12, y: y + 14 },
    escapeMarkup(`${name} ${times.length}`),
  );
  return label + marks.join('');
}

function gridOf(axis: Axis, height: number): string {
  const step = stepOf((axis.to - axis.from) / 12);
  const first = Math.ceil(axis.from / step);
  return Array.from({ length: Math.max(0, Math.floor(axis.to / step) - first + 1) }, (_, index) => {
    const at = (first + index) * step;
    const x = pixelOf(axis, at);
    return (
      element('line', { class: 'grid', x1: x, x2: x, y1: headHeight - 10, y2: height - 22 }) +
      element('text', { class: 'tick', x, y: height - 6 }, `${Number((at / 1000).toFixed(3))} s`)
    );
  }).join('');
}

/** A round number not below this. */
function stepOf(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power * 10;
}

function seconds(at: number): string {
  return `${(at / 1000).toFixed(3)} s`;
}
