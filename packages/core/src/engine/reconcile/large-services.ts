import {
  buildContext,
  type BuiltService,
  type PreparedService,
  prepareService,
  unitsPerPort,
} from '../../model/forwarding/build-service.ts';
import type {
  ClusterStateView,
  TableOptions,
  ForwardingTable,
  HealthCheck,
  ServiceForwarding,
  TableDelta,
} from '../../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { ServiceKey, ServicePortKey } from '../../model/records/keys.ts';
import { type Dirty, nothingDirty } from '../../model/state/cluster-state.ts';
import { type Clock, type Millis, millis } from '../../base/time.ts';
import type { ChangeTrigger } from './family-metrics.ts';
import { sleepUnlessAborted } from '../../base/abortable.ts';
import { compareTexts } from '../../base/values.ts';

/** Minimum size, in units (`unitsOf`), of a Service that is built in steps. */
const largeFrom = 10_000;
/** Units between two pauses for other work: 3 to 10 ms. */
const unitsPerTurn = 4000;

/** Limit of changes of one Service that are measured. */
const maxTriggers = 1000;

/** Changes of a large Service that no run contains yet. */
interface Waiting {
  /** Monotonic time of the oldest one. */
  readonly since: Millis;
  readonly triggers: readonly ChangeTrigger[];
}

/** Changes of large Services that go into the next table. */
interface TakenServices {
  readonly dirty: Dirty;
  readonly changes: readonly Waiting[];
}

interface NotedChanges {
  readonly dirty: Dirty;
  readonly triggers: readonly ChangeTrigger[];
}

interface LargeServicesOptions {
  readonly ipFamily: IpFamily;
  readonly state: ClusterStateView;
  readonly tableOptions: () => TableOptions;
  readonly clock: Clock;
  /** Called when `take` returns changes. */
  readonly onReady: () => void;
}

/**
 * Builds large Services in steps beside the applies, so that a change of another Service never waits for such a build. All
 * changes that a Service sees before its build begins are in one build; later changes are in the next one. Ports
 * whose slices did not change since the last build are not built again.
 */
export class LargeServices {
  readonly #options: LargeServicesOptions;
  readonly #waiting = new Map<ServiceKey, Waiting>();
  readonly #ready = new Map<ServiceKey, Waiting>();
  readonly #builds = new Map<ServiceKey, PreparedService>();
  #inWork: { readonly key: ServiceKey; readonly waiting: Waiting } | undefined;
  #woken = Promise.withResolvers<void>();
  /** Whether other Services went first in the last run. */
  #hasYielded = false;

  constructor(options: LargeServicesOptions) {
    this.#options = options;
  }

  get builds(): ReadonlyMap<ServiceKey, BuiltService> {
    return this.#builds;
  }

  /** Monotonic time of the oldest change that was not taken. */
  get oldest(): Millis | undefined {
    const all = [...this.#ready.values(), ...this.#waiting.values()].map(({ since }) => since);
    if (this.#inWork !== undefined) all.push(this.#inWork.waiting.since);
    return all.length === 0 ? undefined : millis(Math.min(...all));
  }

  /** Keeps the changes of large Services. Returns all others, for the next run. */
  divert(changes: NotedChanges): NotedChanges {
    const { dirty, triggers } = changes;
    if (dirty.everything) for (const key of this.#builds.keys()) this.#note(key, []);
    const large = new Set([...dirty.services].filter((key) => this.#isLarge(key)));
    if (large.size === 0) return changes;
    for (const key of large) {
      this.#note(
        key,
        triggers.filter(({ service }) => service === key),
      );
    }
    return {
      dirty: { services: dirty.services.difference(large), everything: dirty.everything },
      triggers: triggers.filter(({ service }) => !large.has(service)),
    };
  }

  /**
   * The changes that `builds` contains, for the run that begins. While others wait, nothing: they go first, but not twice
   * in a row.
   */
  take(doOthersWait: boolean): TakenServices {
    this.#hasYielded = doOthersWait && !this.#hasYielded && this.#ready.size > 0;
    if (this.#hasYielded) this.#options.onReady();
    if (this.#hasYielded || this.#ready.size === 0) return nothingTaken;
    const services = new Set(this.#ready.keys());
    const changes = [...this.#ready.values()];
    this.#ready.clear();
    return { dirty: { services, everything: false }, changes };
  }

  /** Builds until aborted, one Service at a time, the one that has waited longest first. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#woken.resolve();
    signal.addEventListener('abort', wake, { once: true });
    while (!signal.aborted) {
      await this.#woken.promise;
      await this.#pause(signal); // changes that arrive together are noted first
      const [first] = this.#waiting;
      if (first === undefined) this.#woken = Promise.withResolvers();
      else await this.#buildOne(...first, signal);
    }
  }

  async #buildOne(key: ServiceKey, waiting: Waiting, signal: AbortSignal): Promise<void> {
    this.#waiting.delete(key);
    const work = { key, waiting };
    this.#inWork = work;
    const prepared = await this.#prepare(key, signal);
    if (prepared === undefined || this.#inWork !== work) return; // aborted, or no longer large
    this.#inWork = undefined;
    this.#builds.set(key, prepared);
    this.#ready.set(key, merged(this.#ready.get(key), waiting));
    this.#options.onReady();
  }

  /** Whether the Service is large. Removes a small one, which is built with the others. */
  #isLarge(key: ServiceKey): boolean {
    if (unitsOf(key, this.#options) >= largeFrom) return true;
    for (const known of [this.#builds, this.#waiting, this.#ready]) known.delete(key);
    if (this.#inWork?.key === key) this.#inWork = undefined;
    return false;
  }

  #note(key: ServiceKey, triggers: readonly ChangeTrigger[]): void {
    this.#waiting.set(key, merged(this.#waiting.get(key), { since: this.#options.clock.monotonic(), triggers }));
    this.#woken.resolve();
  }

  /** Undefined when aborted. */
  async #prepare(key: ServiceKey, signal: AbortSignal): Promise<PreparedService | undefined> {
    const { state, tableOptions } = this.#options;
    const steps = prepareService(key, buildContext(state, tableOptions()), this.#builds.get(key));
    for (let units = 0; !signal.aborted;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      units += step.value;
      if (units < unitsPerTurn) continue;
      units = 0;
      await this.#pause(signal);
    }
    return undefined;
  }

  async #pause(signal: AbortSignal): Promise<void> {
    await sleepUnlessAborted(this.#options.clock, millis(0), signal);
  }
}

const nothingTaken: TakenServices = { dirty: nothingDirty, changes: [] };

function merged(before: Waiting | undefined, { since, triggers }: Waiting): Waiting {
  return before === undefined
    ? { since, triggers }
    : { since: before.since, triggers: [...before.triggers, ...triggers].slice(0, maxTriggers) };
}

/** Returns the work of building a Service: its ports, and the endpoints of its slices by port. */
function unitsOf(key: ServiceKey, { state, ipFamily }: LargeServicesOptions): number {
  const service = state.services.get(key);
  if (service?.ipFamilies.includes(ipFamily) !== true) return 0;
  let units = unitsPerPort * service.ports.length;
  for (const slice of state.slicesOf(key)) {
    if (slice.ipFamily === ipFamily) units += slice.ports.length * slice.endpoints.length;
  }
  return units;
}

/** Returns the earlier of two times, or the only one. */
export function earliest(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  return a !== undefined && b !== undefined && b < a ? b : (a ?? b);
}

/**
 * Returns `delta` and the services that the last apply named as failed: they are not in the kernel although the delta's
 * base has them. Every caller of `DataplaneBackend.apply` with deltas needs this. Both lists stay in key order.
 */
export function withFailed(
  delta: TableDelta,
  table: ForwardingTable,
  failed: ReadonlyMap<ServicePortKey, unknown>,
): TableDelta {
  if (failed.size === 0) return delta;
  const upserted = new Map<ServicePortKey, ServiceForwarding>(delta.upserted.map((service) => [service.key, service]));
  const removed = new Set(delta.removed);
  for (const key of failed.keys()) {
    const service = table.services.get(key);
    if (service === undefined) removed.add(key);
    else upserted.set(key, service);
  }
  return {
    settingsChanged: delta.settingsChanged,
    upserted: [...upserted.values()].sort((a, b) => compareTexts(a.key, b.key)),
    removed: [...removed].sort(compareTexts),
  };
}

/**
 * Returns the health checks to announce: those of `table`, but for Services with a failed port the ones announced before,
 * because the kernel state is that of before.
 */
export function announcedChecks(
  previous: ReadonlyMap<ServiceKey, HealthCheck>,
  table: ForwardingTable,
  failed: ReadonlyMap<ServicePortKey, unknown>,
): ReadonlyMap<ServiceKey, HealthCheck> {
  if (failed.size === 0) return table.healthChecks;
  const held = new Set([...failed.keys()].map((key) => table.services.get(key)?.service));
  const announced = new Map<ServiceKey, HealthCheck>();
  for (const check of table.healthChecks.values()) {
    const allowed = held.has(check.service) ? previous.get(check.service) : check;
    if (allowed !== undefined) announced.set(check.service, allowed);
  }
  return announced;
}
