import { HostError, type IpAddress, messageOf, millis, type Millis, parseIp } from '@switchyard/core';
import { type HttpHandler, type HttpRequest, textAnswer } from '@switchyard/core/health';
import type { DropCounter, Loss, LossReader, LossReading, LossSources, ServiceView } from '@switchyard/drops';
import { traitsOf } from '../backends.ts';
import { type DebugState, timeText } from './debug-state.ts';
import { readText } from './debug-status.ts';
import { faultOfNames, parseFormat, parseTime, streamTime } from './query-parameters.ts';
import { limitedStreams, streamHeartbeat } from './route.ts';

const lossesUsage = [
  'usage: /debug/losses?[seconds=N][&namespace=NAMESPACE][&format=text|json]',
  '  seconds    time to watch, 1 to 3600; default: 10',
  '  namespace  only Services of this namespace; default: all',
  '  format     default: text',
  '',
].join('\n');

interface LossesQuery {
  readonly time: Millis;
  readonly namespace: string | undefined;
  readonly format: 'text' | 'json';
}

/** Time between two readings of the kernel's counts. */
const readInterval = millis(500);
/** Each counts every dropped packet. */
const maxWatchers = 4;

/** Reads the parameters; returns the fault as text. */
function parseQuery(parameters: URLSearchParams): LossesQuery | string {
  const fault = faultOfNames(parameters, ['seconds', 'namespace', 'format']);
  if (fault !== undefined) return fault;
  const time = parseTime(parameters, streamTime);
  if (typeof time === 'string') return time;
  const format = parseFormat(parameters);
  if (typeof format === 'string') return format;
  return { time, namespace: parameters.get('namespace') ?? undefined, format: format.format ?? 'text' };
}

/** Opens the kernel's count of dropped packets. Rejects with `HostError` where the kernel or the process's rights do not allow it. */
export type OpenDrops = (signal: AbortSignal) => Promise<KernelDrops>;

/** A kernel's sources of losses. */
export interface KernelDrops extends Pick<LossSources, 'unanswered'> {
  readonly counter: DropCounter;
}

export const openKernelDrops: OpenDrops = async (signal) => {
  const { listUnansweredFlows, openDropCounter } = await import('@switchyard/drops');
  return { counter: await openDropCounter(signal), unanswered: listUnansweredFlows };
};

/** A reader of losses. */
export interface OpenedReader {
  readonly reader: LossReader;
  /** Why packets cannot be watched. */
  readonly obstacle: string | undefined;
}

export async function openReader(state: DebugState, open: OpenDrops, signal: AbortSignal): Promise<OpenedReader> {
  const { LossReader: Reader, listNamespaces, ownCookie } = await import('@switchyard/drops');
  const { chainReader } = await import('../why/chains-at.ts');
  let kernel: KernelDrops | undefined;
  let obstacle: string | undefined;
  try {
    kernel = await open(signal);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    obstacle = messageOf(error);
  }
  const needsCounters = kernel === undefined || traitsOf(state.mode).translation === 'sockets';
  const readCounters = needsCounters ? state.serviceCounters : undefined;
  return {
    reader: new Reader({
      counter: kernel?.counter,
      readCounters,
      readFile: readText,
      netns: ownCookie(),
      monotonic: kernelNow,
      chainsAt: chainReader({ clock: state.clock }),
      namespaces: listNamespaces,
      ...(kernel?.unanswered === undefined ? {} : { unanswered: kernel.unanswered }),
    }),
    obstacle,
  };
}

/** CLOCK_MONOTONIC, as the kernel's programs have it. */
function kernelNow(): Millis {
  return millis(Number(process.hrtime.bigint() / 1000n) / 1000);
}

/**
 * `/debug/losses`: lost packets of Services while the request lasts, one line per cause, Service and client. Nothing is counted
 * before and after.
 */
export function lossesRoute(state: DebugState, open: OpenDrops = openKernelDrops): HttpHandler {
  const answer = limitedStreams(maxWatchers, 'losses');
  async function* pieces(query: LossesQuery, signal: AbortSignal): AsyncGenerator<string, void> {
    const opened = await openReader(state, open, signal);
    using _ = opened.reader;
    yield* watch({ state, query, ...opened, signal });
  }
  return (request: HttpRequest, signal) => {
    const query = parseQuery(request.query);
    if (typeof query === 'string') return textAnswer(400, `${query}\n\n${lossesUsage}`);
    const type = query.format === 'json' ? 'application/x-ndjson' : 'text/plain; charset=utf-8';
    return answer(type, () => pieces(query, signal));
  };
}

/** First lines where packets cannot be watched. */
function obstacleText(obstacle: string): string {
  return [
    `# Dropped packets cannot be watched: ${obstacle}`,
    '# Only what Services refuse is shown, by their counters. Watching takes Linux 5.17 with BTF, libbpf (image agent-ebpf), and the',
    '# capabilities BPF and PERFMON; with SYSLOG it also names the hook.',
    '',
  ].join('\n');
}

interface Watch extends OpenedReader {
  readonly state: DebugState;
  readonly query: LossesQuery;
  readonly signal: AbortSignal;
}

async function* watch({ state, query, reader, obstacle, signal }: Watch): AsyncGenerator<string, void> {
  // Tables between two readings count, too: a drop is explained by the table that it met.
  const endNotes = state.onApplied(() => reader.noteTables(viewOf(state)));
  try {
    const { clock } = state;
    const end = clock.monotonic() + query.time;
    let lastWrite = clock.monotonic();
    await reader.start(viewOf(state), signal);
    yield query.format === 'json'
      ? headJson(state, obstacle)
      : `${obstacle === undefined ? '' : obstacleText(obstacle)}${headLine}`;
    while (!signal.aborted && clock.monotonic() < end) {
      await clock.sleep(millis(Math.min(readInterval, Math.max(0, end - clock.monotonic()))), signal);
      const reading = selected(await reader.read(viewOf(state), signal), query.namespace);
      const text = query.format === 'json' ? jsonLines(state, reading) : textLines(state, reading);
      if (text === '' && clock.monotonic() - lastWrite < streamHeartbeat) continue;
      lastWrite = clock.monotonic();
      yield text === '' ? '\n' : text;
    }
  } finally {
    endNotes();
  }
}

const loopback: readonly IpAddress[] = [parseIp('127.0.0.1'), parseIp('::1')];

export function viewOf(state: DebugState): ServiceView {
  return {
    tables: state.tables(),
    tableAges: tableAgesOf(state),
    proxyLag: state.proxyLag,
    traits: traitsOf(state.mode),
    nodeAddresses: [...state.interfaceAddresses(), ...loopback],
    podCidrs: state.podCidrs(),
  };
}

function tableAgesOf({ status, now }: DebugState): ServiceView['tableAges'] {
  const applied = [...status().families].map(
    ([ipFamily, { lastApplied = millis(0) }]) => [ipFamily, lastApplied] as const,
  );
  return new Map(applied.map(([ipFamily, at]) => [ipFamily, millis(now() - at)]));
}

function selected(reading: LossReading, namespace: string | undefined): LossReading {
  if (namespace === undefined) return reading;
  const isWanted = ({ services }: Loss): boolean => services.some((key) => key.startsWith(`${namespace}/`));
  return { ...reading, losses: reading.losses.filter(isWanted) };
}

const columns = [
  ['TIME', 8],
  ['FROM', 16],
  ['SERVICE', 28],
  ['ASKED', 24],
  ['WHERE', 16],
  ['COUNT', 5],
  ['CAUSE', 19],
  ['WHY', 0],
] as const;

const headLine = lineOf(columns.map(([name]) => name));

function lineOf(cells: readonly string[]): string {
  return `${cells
    .map((cell, index) => cell.padEnd(columns[index]?.[1] ?? 0))
    .join('  ')
    .trimEnd()}\n`;
}

function textLines({ now }: DebugState, { losses, missed }: LossReading): string {
  const time = timeText(now()).slice(11, 19);
  const lines = losses.map((loss) =>
    lineOf([
      time,
      loss.client ?? '-',
      `${loss.service ?? '-'}${loss.services.length > 1 ? ` +${loss.services.length - 1}` : ''}`,
      loss.frontend,
      [loss.where.netns, loss.where.hook ?? ''].join(' ').trim(),
      String(loss.count),
      loss.cause,
      `${loss.certainty === 'likely' ? 'likely: ' : ''}${loss.direction === 'answer' ? 'answer: ' : ''}${loss.why}`,
    ]),
  );
  const more = missed === 0 ? '' : `${time}  ${missed} more dropped packets: too many flows to keep them apart\n`;
  return lines.join('') + more;
}

/** The first line: which node speaks, in which namespace, and whether it sees packets. */
function headJson({ now, nodeName, mode }: DebugState, obstacle: string | undefined): string {
  const packets = obstacle === undefined ? { watched: true } : { watched: false, why: obstacle };
  return `${JSON.stringify({ time: timeText(now()), node: nodeName, mode, packets })}\n`;
}

function jsonLines({ now, nodeName }: DebugState, { losses, missed }: LossReading): string {
  const head = { time: timeText(now()), node: nodeName };
  const lines = losses.map((loss) => `${JSON.stringify({ ...head, ...loss })}\n`);
  return lines.join('') + (missed === 0 ? '' : `${JSON.stringify({ ...head, missed })}\n`);
}
