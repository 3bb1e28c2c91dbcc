import { UsageError } from '../base/errors.ts';
import type { ForwardingTable, ServiceForwarding } from '../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../model/ip/address.ts';
import type { ServicePortKey } from '../model/records/keys.ts';
import type {
  ApplyOutcome,
  ApplyRequest,
  BackendCapabilities,
  BackendObservers,
  DataplaneBackend,
  Drift,
} from '../engine/dataplane-backend.ts';
import { type Millis, millis } from '../base/time.ts';

/** Declared properties of a recording backend. */
export interface RecordingBackendOptions {
  readonly ipFamily?: IpFamily;
  readonly capabilities?: Partial<BackendCapabilities>;
  /** Runs inside each apply, before anything is written: to wait, to look, to change the cluster. */
  readonly during?: (request: ApplyRequest, signal: AbortSignal) => Promise<void>;
  /** Whether it notices drift; default: yes. */
  readonly canWatch?: boolean;
  /** Errors with which the first calls of `observers.drift` reject. */
  readonly watchFailures?: readonly Error[];
  /** It keeps a heartbeat: how old it is at the start (undefined: there is none), and what the first marks reject with. */
  readonly heartbeat?: { readonly age?: Millis | Error; readonly failures?: readonly (Error | undefined)[] };
  /** Further abilities. */
  readonly observers?: BackendObservers;
}

/**
 * A backend whose kernel is a map. It holds its caller to the contract and throws `UsageError` for a
 * breach: calls must not overlap or come after disposal, the first apply must be full, and a delta
 * must lead from what is there to the table it comes with. Services can be refused, which yields
 * `partial` and leaves their old state in the kernel.
 */
export class RecordingBackend implements DataplaneBackend {
  readonly name = 'recording';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  readonly observers: BackendObservers;
  /** How many applies there had been at each heartbeat that reached the kernel. */
  readonly heartbeats: number[] = [];
  /** Error that applies report about a remaining foreign object. */
  unremoved: Error | undefined;
  /** Every request, in order, with what became of it. */
  readonly applies: { readonly request: ApplyRequest; readonly outcome: ApplyOutcome }[] = [];
  readonly #during: RecordingBackendOptions['during'];
  readonly #watchFailures: Error[];
  readonly #refused = new Map<ServicePortKey, Error>();
  readonly #kernel = new Map<ServicePortKey, ServiceForwarding>();
  #watcher: ((drift: Drift) => void) | undefined;
  #table: ForwardingTable | undefined;
  #state: 'idle' | 'busy' | 'disposed' = 'idle';

  constructor(options: RecordingBackendOptions = {}) {
    this.ipFamily = options.ipFamily ?? 'IPv4';
    this.capabilities = {
      usesKernelConntrack: true,
      sessionAffinity: true,
      sourceRanges: true,
      minSyncPeriod: millis(0),
      ...options.capabilities,
    };
    this.#during = options.during;
    const { canWatch = true, heartbeat, observers } = options;
    const failures = [...(heartbeat?.failures ?? [])];
    this.observers = {
      ...(canWatch ? { drift: (report, signal) => this.#watch(report, signal) } : {}),
      ...(heartbeat === undefined
        ? {}
        : { age: { mark: (signal) => this.#mark(failures, signal), read: (signal) => ageOf(heartbeat.age, signal) } }),
      ...observers,
    };
    this.#watchFailures = [...(options.watchFailures ?? [])];
  }

  /** Services in the kernel. */
  get kernel(): ReadonlyMap<ServicePortKey, ServiceForwarding> {
    return this.#kernel;
  }

  /** The table of the last apply, undefined before it and after a cleanup. */
  get table(): ForwardingTable | undefined {
    return this.#table;
  }

  /** The kernel refuses every write of this service from now on; `undefined` takes it again. */
  refuse(key: ServicePortKey, error: Error | undefined): void {
    if (error === undefined) this.#refused.delete(key);
    else this.#refused.set(key, error);
  }

  /** Removes services from the kernel as another process and notifies the watcher. Without a watcher the test fails. */
  drift(drift: Drift, ...lost: readonly ServicePortKey[]): void {
    if (this.#watcher === undefined) throw breach('drift without a watcher');
    for (const key of lost) this.#kernel.delete(key);
    this.#watcher(drift);
  }

  async #mark(failures: (Error | undefined)[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#state === 'disposed') throw breach('a heartbeat after disposal');
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    this.heartbeats.push(this.applies.length);
  }

  async #watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const failure = this.#watchFailures.shift();
    if (failure !== undefined) throw failure;
    if (this.#watcher !== undefined) throw breach('two watchers of drift');
    this.#watcher = report;
    await new Promise((resolve) => {
      if (signal.aborted) resolve(undefined);
      signal.addEventListener('abort', resolve, { once: true });
    });
    this.#watcher = undefined;
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    if (this.#state !== 'idle') throw breach(`apply while ${this.#state}`);
    this.#state = 'busy';
    try {
      signal.throwIfAborted();
      await this.#during?.(request, signal);
      signal.throwIfAborted();
      const outcome = this.#write(request);
      this.applies.push({ request, outcome });
      return outcome;
    } finally {
      this.#state = 'idle';
    }
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    if (this.#state !== 'idle') throw breach(`cleanup while ${this.#state}`);
    const removed = [...this.#kernel.keys()];
    this.#kernel.clear();
    this.#table = undefined;
    return removed;
  }

  async dump(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return [...this.#kernel.values()]
      .map((service) => `${service.key} ${JSON.stringify([service.frontends, service.endpoints])}\n`)
      .sort()
      .join('');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === 'busy') throw breach('disposal during an apply');
    this.#state = 'disposed';
  }

  #write({ table, scope }: ApplyRequest): ApplyOutcome {
    if (table.ipFamily !== this.ipFamily) throw breach(`a table of ${table.ipFamily} for ${this.ipFamily}`);
    const upserted = scope.kind === 'full' ? [...table.services.values()] : scope.delta.upserted;
    const removed =
      scope.kind === 'full' ? [...this.#kernel.keys()].filter((key) => !table.services.has(key)) : scope.delta.removed;
    if (scope.kind === 'full' && scope.after !== undefined && this.#table === undefined) {
      throw breach(`a full apply after ${scope.after} before the first full apply`);
    }
    if (scope.kind === 'delta') this.#checkDelta(table, upserted, removed);
    const failed = new Map<ServicePortKey, Error>();
    let writes = 0;
    const write = (key: ServicePortKey, service: ServiceForwarding | undefined): void => {
      const error = this.#refused.get(key);
      if (error !== undefined) failed.set(key, error);
      else if (this.#kernel.get(key) !== service) {
        writes++;
        if (service === undefined) this.#kernel.delete(key);
        else this.#kernel.set(key, service);
      }
    };
    for (const key of removed) write(key, undefined);
    for (const service of upserted) write(service.key, service);
    this.#table = table;
    const written = this.unremoved === undefined ? { writes } : { writes, unremoved: this.unremoved };
    return failed.size > 0 ? { status: 'partial', ...written, failed } : { status: 'applied', ...written };
  }

  /** A delta must say everything that differs, and nothing that is not so. */
  #checkDelta(
    table: ForwardingTable,
    upserted: readonly ServiceForwarding[],
    removed: readonly ServicePortKey[],
  ): void {
    if (this.#table === undefined) throw breach('a delta before the first full apply');
    const named = new Set([...upserted.map((service) => service.key), ...removed]);
    for (const service of upserted) {
      if (table.services.get(service.key) !== service) throw breach(`upserted ${service.key} is not in the table`);
    }
    for (const key of removed) if (table.services.has(key)) throw breach(`removed ${key} is in the table`);
    for (const key of new Set([...table.services.keys(), ...this.#kernel.keys()])) {
      const differs = table.services.get(key) !== this.#kernel.get(key);
      if (differs && !named.has(key)) throw breach(`the delta lacks ${key}`);
    }
  }
}

async function ageOf(age: Millis | Error | undefined, signal: AbortSignal): Promise<Millis | undefined> {
  signal.throwIfAborted();
  if (age instanceof Error) throw age;
  return age;
}

function breach(what: string): UsageError {
  return new UsageError('recording-backend.contract', `contract of DataplaneBackend: ${what}`);
}
