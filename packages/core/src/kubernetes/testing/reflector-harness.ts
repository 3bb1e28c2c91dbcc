import { nodeName } from '../../model/records/keys.ts';
import type { ClusterEvent, Records, ResourceKind } from '../../model/state/cluster-event.ts';
import { MemoryLogger } from '../../testing/memory-logger.ts';
import { MemoryMetrics } from '../../testing/memory-metrics.ts';
import { RecordingClock } from '../../testing/recording-clock.ts';
import { type Exchange, ScriptedApiServer, serveWatchList } from '../../testing/scripted-api-server.ts';
import { millis, seconds, systemClock } from '../../base/time.ts';
import { type ApiClient, newApiClient } from '../api-client.ts';
import { defaultTls, fixedCredentials } from '../api-server-connection.ts';
import { OutageWaits } from '../outages.ts';
import { Reflector } from '../reflector.ts';
import { defaultTimings, type ReflectorTimings, type ResourceQuery, resourceQueries } from '../resources.ts';
import { SourceMetrics } from '../source-metrics.ts';
import { projections, type RawObjects } from '../to-records.ts';

/** One reflector, of Services unless said otherwise, against a scripted server; and everything it says. */
export class ReflectorHarness implements AsyncDisposable {
  readonly server: ScriptedApiServer;
  readonly clock: RecordingClock = new RecordingClock();
  readonly log: MemoryLogger = new MemoryLogger();
  readonly metrics: MemoryMetrics = new MemoryMetrics();
  readonly sourceMetrics: SourceMetrics = new SourceMetrics(this.metrics, this.clock);
  readonly events: ClusterEvent[] = [];
  readonly #client: ApiClient;
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  readonly #kind: ResourceKind;

  constructor(server: ScriptedApiServer, kind: ResourceKind = 'Service') {
    this.server = server;
    this.#kind = kind;
    this.#client = newApiClient(
      { url: server.url, tls: defaultTls, credentials: fixedCredentials(undefined) },
      { clock: this.clock, metrics: this.metrics, userAgent: 'test', connectLimit: seconds(90) },
    );
  }

  /** A harness with a server of its own. Nothing runs yet. */
  static async create(kind?: ResourceKind): Promise<ReflectorHarness> {
    return new ReflectorHarness(await ScriptedApiServer.listen(), kind);
  }

  /** Starts a fresh reflector. `random` answers every roll of the dice. */
  start(timings: Partial<ReflectorTimings> = {}, random = 0.5, waits: OutageWaits = new OutageWaits(this.clock)): void {
    const run = <K extends ResourceKind>(query: ResourceQuery<K>, signal: AbortSignal): Promise<never> =>
      new Reflector<K, Records[K]>({
        query,
        client: this.#client,
        project: (raw) => projections[query.kind](raw as RawObjects[K]), // the path says so
        deliver: (event) => this.events.push(event as ClusterEvent), // of one K; TypeScript distributes the union
        clock: this.clock,
        random: () => random,
        log: this.log,
        timings: { ...defaultTimings, initialInactivity: seconds(90), ...timings },
        sourceMetrics: this.sourceMetrics,
        waits,
      }).run(signal);
    this.#stop = new AbortController();
    this.#running = run(this.#query, this.#stop.signal).catch((error: unknown) => error);
  }

  /** Stops the reflector; resolves with what its `run` rejected with. */
  async stop(): Promise<unknown> {
    this.#stop.abort('stopped');
    return this.#running;
  }

  get #query(): ResourceQuery<ResourceKind> {
    return resourceQueries({ kind: 'one', name: nodeName('node1') })[this.#kind] as ResourceQuery<ResourceKind>; // one of the union
  }

  /** The next request, taken. */
  next(): Promise<Exchange> {
    return this.server.next(this.#query.path);
  }

  /** Answers the next WatchList with Services of these names, and waits until they were delivered. */
  async sync(version: string, ...names: readonly string[]): Promise<Exchange> {
    const before = this.events.length;
    const objects = names.map((name) => serviceObject(name, '1'));
    const exchange = serveWatchList(await this.next(), version, objects);
    await this.until(() => this.events.length > before);
    return exchange;
  }

  /** Events in short: `replace shop/a shop/b`, `upsert shop/a`, `delete shop/a`. */
  get told(): readonly string[] {
    return this.events.map((event) => {
      if (event.kind === 'delete') return `delete ${event.name}`;
      const items = event.kind === 'replace' ? event.items : [event.item];
      return [event.kind, ...items.map((item) => ('key' in item ? item.key : item.name))].join(' ');
    });
  }

  /** Waits for what the network brings; the test's own time limit is the bound. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.pause();
  }

  /** A few milliseconds of real time. */
  pause(): Promise<void> {
    return systemClock.sleep(millis(2), new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#client[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

/** A Service as the API sends it. */
export function serviceObject(name: string, resourceVersion: string, type = 'ClusterIP'): object {
  return { kind: 'Service', metadata: { namespace: 'shop', name, resourceVersion }, spec: { type } };
}

/** Watch events of Services in the namespace `shop`; `modified` makes a NodePort Service of it. */
export const added = (name: string, version: string): object => ({
  type: 'ADDED',
  object: serviceObject(name, version),
});
export const modified = (name: string, version: string): object => ({
  type: 'MODIFIED',
  object: serviceObject(name, version, 'NodePort'),
});
export const deleted = (name: string, version: string): object => ({
  type: 'DELETED',
  object: serviceObject(name, version),
});

/** The requested version is older than the oldest that the server has. */
export const gone: { readonly type: string; readonly object: object } = {
  type: 'ERROR',
  object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' },
};
