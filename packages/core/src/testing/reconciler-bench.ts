import { type RecordedEvent, type LogFields, type Logger, noopLogger } from '../base/log.ts';
import type { IpFamily } from '../model/ip/address.ts';
import type { MetricLabels, Metrics } from '../metrics/metrics.ts';
import { nodeName, serviceKey, servicePortKey, type ServicePortKey } from '../model/records/keys.ts';
import type { DataplaneBackend } from '../engine/dataplane-backend.ts';
import type { AfterApply, FamilyOptions } from '../engine/reconcile/family-reconciler.ts';
import type { FamilyStatus } from '../engine/reconcile/family-log.ts';
import { createReconciler, type Reconciler, type StartCondition } from '../engine/reconcile/reconciler.ts';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import { ClusterState } from '../model/state/cluster-state.ts';
import { type Millis, millis } from '../base/time.ts';
import { node, type OptionsSpec, service, slice, tableOptions } from './builders.ts';
import { replaceAll } from './expand-states.ts';
import { type Fault, FaultyBackend } from './faulty-backend.ts';
import { ManualClock, settle } from './manual-clock.ts';
import { MemoryMetrics } from './memory-metrics.ts';
import { MemorySource } from './memory-source.ts';
import { RecordingBackend, type RecordingBackendOptions } from './recording-backend.ts';

/** The two Service ports of `cluster`. */
export const cart: ServicePortKey = servicePortKey(serviceKey('shop', 'cart'), '', 'TCP');
export const pay: ServicePortKey = servicePortKey(serviceKey('shop', 'pay'), '', 'TCP');

/** Two services with one endpoint each, seen from node n1. */
export const cluster: readonly ClusterEvent[] = replaceAll({
  services: [service('shop/cart'), service('shop/pay', { clusterIps: ['10.96.0.11'] })],
  slices: [slice('shop/cart', { endpoints: ['10.244.1.1'] }), slice('shop/pay', { endpoints: ['10.244.1.2'] })],
  nodes: [node('n1')],
});

/** The batch that gives shop/cart these endpoints. */
export function cartSlice(...ips: readonly string[]): readonly ClusterEvent[] {
  return [{ kind: 'upsert', resource: 'EndpointSlice', item: slice('shop/cart', { endpoints: ips }) }];
}

/** Never ends before it is aborted: a kernel that hangs. */
export function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

/** Options of a test. */
export interface ReconcilerBenchOptions {
  readonly backend?: RecordingBackendOptions;
  /** Failures of the first applies of the IPv4 backend. */
  readonly faults?: readonly (Fault | undefined)[];
  readonly minSyncPeriod?: number;
  readonly startConditions?: (state: ClusterState) => readonly StartCondition[];
  /** The backend of a second family. */
  readonly other?: DataplaneBackend;
  readonly cleanStaleFlows?: (
    ...given: Parameters<NonNullable<AfterApply['cleanStaleFlows']>>
  ) => Promise<Millis | void>;
  readonly sourceSilence?: () => Millis;
  /** See `OptionsSpec`; read before each build. */
  readonly apiServers?: OptionsSpec['apiServers'];
  readonly routerIpMode?: OptionsSpec['routerIpMode'];
}

/** A reconciler that runs from the start, with everything around it in memory. Time begins at 1000. */
export class ReconcilerBench implements AsyncDisposable {
  readonly clock: ManualClock = new ManualClock(1000);
  readonly source: MemorySource = new MemorySource();
  readonly recording: RecordingBackend;
  readonly backend: FaultyBackend;
  readonly reconciler: Reconciler;
  /** Actions after applies: `health of FAMILY: SERVICE=COUNT ... after N` (applies), `flows of FAMILY after N`. */
  readonly happened: string[] = [];
  readonly logged: (LogFields & { readonly message: string })[] = [];
  /** Observed network programming latencies in seconds. */
  readonly latencies: number[] = [];
  readonly metrics: MemoryMetrics = new MemoryMetrics();
  /** Foreign changes counted, by kind. */
  readonly drifts: string[] = [];
  /** Recorded Events. */
  readonly events: RecordedEvent[] = [];
  /** Settles with the reconciler's `run`. */
  readonly ended: Promise<void>;
  readonly #controller = new AbortController();

  constructor(options: ReconcilerBenchOptions = {}) {
    const state = new ClusterState({ nodeName: nodeName('n1') });
    this.recording = new RecordingBackend(options.backend);
    this.backend = new FaultyBackend(this.recording, { faults: options.faults ?? [] });
    const backends = [this.backend, ...(options.other === undefined ? [] : [options.other])];
    this.reconciler = createReconciler({
      source: this.source,
      state,
      nodeName: nodeName('n1'),
      families: backends.map((backend) => this.#family(backend, options)),
      startConditions: options.startConditions?.(state) ?? [],
      timing: {
        minSyncPeriod: options.minSyncPeriod === undefined ? undefined : millis(options.minSyncPeriod),
        retry: { first: millis(1000), max: millis(30_000) },
        resyncInterval: millis(3_600_000),
      },
      clock: this.clock,
      logger: this.#logger(),
      metrics: this.#measure(),
      events: { record: (event) => void this.events.push(event) },
      sourceSilence: options.sourceSilence ?? (() => millis(0)),
    });
    this.ended = this.reconciler.run(this.#controller.signal);
    this.ended.catch(() => undefined); // the test that cares awaits it
  }

  /** Delivers a batch and lets everything happen that needs no time. */
  async push(batch: readonly ClusterEvent[]): Promise<void> {
    this.source.push(batch);
    await settle();
  }

  /** `full`, `full after drift`, or `delta: KEY ... -REMOVED ...`, of each apply that reached the recording backend. */
  get applies(): readonly string[] {
    return this.recording.applies.map(({ request: { scope } }) => {
      if (scope.kind === 'full') return scope.after === undefined ? 'full' : `full after ${scope.after}`;
      const { upserted, removed } = scope.delta;
      return `delta: ${[...upserted.map((one) => one.key), ...removed.map((key) => `-${key}`)].join(' ')}`;
    });
  }

  /** Returns actions of one kind after applies. */
  after(kind: 'health' | 'flows'): readonly string[] {
    return this.happened.filter((line) => line.startsWith(kind));
  }

  family(ipFamily: IpFamily = 'IPv4'): FamilyStatus | undefined {
    return this.reconciler.status().families.get(ipFamily);
  }

  messages(message: string): readonly LogFields[] {
    return this.logged.filter((line) => line.message === message);
  }

  stop(): void {
    this.#controller.abort(new Error('stop'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.ended.catch(() => undefined);
  }

  #family(backend: DataplaneBackend, options: ReconcilerBenchOptions): FamilyOptions {
    const { ipFamily } = backend;
    const applied = (): number => this.recording.applies.length;
    return {
      backend,
      tableOptions: () =>
        tableOptions({
          ipFamily,
          apiServers: options.apiServers ?? [],
          routerIpMode: options.routerIpMode ?? 'asVip',
        }),
      afterApply: {
        syncHealth: async (checks) => {
          const counts = [...checks.values()].map((check) => ` ${check.service}=${check.localReadyEndpoints}`);
          this.happened.push(`health of ${ipFamily}:${counts.join('')} after ${applied()}`);
        },
        cleanStaleFlows: async (...given) => {
          this.happened.push(`flows of ${ipFamily} after ${applied()}`);
          return (await options.cleanStaleFlows?.(...given)) ?? millis(0);
        },
      },
    };
  }

  #logger(): Logger {
    const note = (message: string, fields?: LogFields): void => void this.logged.push({ message, ...fields });
    return { ...noopLogger, info: note, warn: note, debug: note };
  }

  #measure(): Metrics {
    return {
      set: (name, labels, value) => this.metrics.set(name, labels, value),
      add: (name, labels: MetricLabels, amount) => {
        this.metrics.add(name, labels, amount);
        if (name === 'switchyard_drift_total') this.drifts.push(`${labels['ip_family']} ${labels['kind']}`);
      },
      observe: (name, labels, value) => {
        this.metrics.observe(name, labels, value);
        if (name === 'kubeproxy_network_programming_duration_seconds') this.latencies.push(value);
      },
    };
  }
}
