import {
  diffTables,
  type ForwardingTable,
  type IpFamily,
  millis,
  type Millis,
  type ServiceForwarding,
  type ServiceKey,
  sleepUntil,
} from '@switchyard/core';
import { type HttpHandler, textAnswer } from '@switchyard/core/health';
import { endpointViews } from './debug-forwarding.ts';
import { type DebugState, timeText } from './debug-state.ts';
import { faultOfNames, parseTime, streamTime } from './query-parameters.ts';
import { limitedStreams, streamHeartbeat } from './route.ts';

const usage = [
  'usage: /debug/changes?[seconds=N][&service=NAMESPACE/NAME]',
  '  seconds  time to watch, 1 to 3600; default: 10',
  '  service  only this Service, and its state first; default: all, only changes',
  '',
].join('\n');

interface ChangesQuery {
  readonly time: Millis;
  readonly service: string | undefined;
}

const maxWatchers = 16;
/** Characters that wait for a slow client; later changes are counted only. */
const maxWaiting = 4_000_000;

function parseQuery(parameters: URLSearchParams): ChangesQuery | string {
  const fault = faultOfNames(parameters, ['seconds', 'service']);
  if (fault !== undefined) return fault;
  const time = parseTime(parameters, streamTime);
  if (typeof time === 'string') return time;
  const service = parameters.get('service') ?? undefined;
  if (service !== undefined && !/^[^/:]+\/[^/:]+$/.test(service))
    return `service ${JSON.stringify(service)} is not NAMESPACE/NAME`;
  return { time, service };
}

/**
 * `/debug/changes`: the endpoints of Services as this node's kernel gets them, one JSON line per change of a Service port and
 * family, while the request lasts. An observer has a change before its node's proxy has applied it. The first line of a Service port is its state before, at the time of the request. A removed
 * Service port has no endpoints.
 */
export function changesRoute(state: DebugState): HttpHandler {
  const answer = limitedStreams(maxWatchers, 'changes');
  return (request, signal) => {
    const query = parseQuery(request.query);
    if (typeof query === 'string') return textAnswer(400, `${query}\n\n${usage}`);
    return answer('application/x-ndjson', () => watch(state, query, signal));
  };
}

async function* watch(
  state: DebugState,
  { time, service }: ChangesQuery,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  const { clock, nodeName, now, proxyLag } = state;
  const changes = new TableChanges(state, service);
  let changed = Promise.withResolvers<void>();
  const endNotes = state.onApplied(() => {
    changes.note();
    changed.resolve();
  });
  try {
    const end = clock.monotonic() + time;
    const head = { time: timeText(now()), node: nodeName, isObserver: proxyLag > 0 };
    yield `${JSON.stringify(head)}\n${changes.take()}`;
    for (let rest: number = time; rest > 0 && !signal.aborted; rest = end - clock.monotonic()) {
      await sleepUntil(changed.promise, { clock, duration: millis(Math.min(streamHeartbeat, rest)) }, signal);
      changed = Promise.withResolvers();
      yield changes.take() || '\n';
    }
  } finally {
    endNotes();
  }
}

/** Changes of the applied tables, as lines that wait for the client. */
class TableChanges {
  readonly #state: DebugState;
  readonly #service: string | undefined;
  readonly #begin: string;
  readonly #known = new Set<string>();
  #tables: ReadonlyMap<IpFamily, ForwardingTable>;
  #lines: string[] = [];
  #length = 0;
  #missed = 0;

  constructor(state: DebugState, service: string | undefined) {
    this.#state = state;
    this.#service = service;
    this.#begin = timeText(state.now());
    this.#tables = new Map(state.tables());
    if (service === undefined) return;
    for (const [ipFamily, { services }] of this.#tables) {
      for (const one of services.values()) if (one.service === service) this.#before(ipFamily, one);
    }
  }

  /** Compares the tables now in force with those of the last call. */
  note(): void {
    const tables = new Map(this.#state.tables());
    for (const [ipFamily, table] of tables) {
      const before = this.#tables.get(ipFamily);
      if (before === table) continue;
      const { upserted, removed } = diffTables(before, table);
      for (const one of upserted.filter(({ service }) => this.#isAsked(service))) {
        const former = before?.services.get(one.key);
        if (former === undefined || !haveSameEndpoints(former, one)) this.#add(ipFamily, { former, next: one, table });
      }
      for (const key of removed) {
        const former = before?.services.get(key);
        if (former !== undefined && this.#isAsked(former.service))
          this.#add(ipFamily, { former, next: undefined, table });
      }
    }
    this.#tables = tables;
  }

  /** The lines since the last call. */
  take(): string {
    const lines = this.#lines;
    if (this.#missed > 0) lines.push(JSON.stringify({ ...this.#head(), missed: this.#missed }));
    this.#lines = [];
    this.#length = 0;
    this.#missed = 0;
    return lines.map((line) => `${line}\n`).join('');
  }

  #head(): Readonly<Record<string, unknown>> {
    return { time: timeText(this.#state.now()), node: this.#state.nodeName };
  }

  #isAsked(service: ServiceKey): boolean {
    return this.#service === undefined || service === this.#service;
  }

  #add(ipFamily: IpFamily, { former, next, table }: Change): void {
    const key = (next ?? former).key;
    if (this.#length >= maxWaiting) return void this.#missed++;
    if (former !== undefined && !this.#known.has(`${key} ${ipFamily}`)) this.#before(ipFamily, former);
    this.#known.add(`${key} ${ipFamily}`);
    const endpoints = next === undefined ? [] : endpointViews(next);
    const { generation } = table;
    this.#push({ ...this.#head(), service: key, ipFamily, generation, endpoints });
  }

  #before(ipFamily: IpFamily, service: ServiceForwarding): void {
    const { key } = service;
    this.#known.add(`${key} ${ipFamily}`);
    const head = { time: this.#begin, node: this.#state.nodeName, service: key, ipFamily, before: true };
    this.#push({ ...head, endpoints: endpointViews(service) });
  }

  #push(line: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(line);
    this.#lines.push(text);
    this.#length += text.length;
  }
}

/** A Service port before and after; at least one is there. */
type Change = { readonly table: ForwardingTable } & (
  | { readonly former: ServiceForwarding | undefined; readonly next: ServiceForwarding }
  | { readonly former: ServiceForwarding; readonly next: undefined }
);

function haveSameEndpoints(a: ServiceForwarding, b: ServiceForwarding): boolean {
  return JSON.stringify(endpointViews(a)) === JSON.stringify(endpointViews(b));
}
