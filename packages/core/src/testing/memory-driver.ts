import type { Clock } from '../base/time.ts';
import { HostError } from '../base/errors.ts';
import type { ApplyRequest } from '../engine/dataplane-backend.ts';
import {
  type Atomicity,
  type ChangeGroup,
  type Driver,
  type DriverRun,
  type GroupOwner,
  type GroupWriter,
  KernelDiffersError,
  type PlannedGroup,
  type ServiceWish,
  type WriteResult,
} from '../engine/apply/driver.ts';
import type { HeldService, ServiceTracker } from '../engine/apply/apply-engine.ts';
import type { ServiceForwarding } from '../model/forwarding/forwarding-table.ts';
import type { ServicePortKey } from '../model/records/keys.ts';

/** One entry of a `MemoryKernel` and its new value; undefined: it goes. `was`: what the driver takes for its value. */
interface MemoryChange {
  readonly id: string;
  readonly was: string | undefined;
  readonly value: string | undefined;
}

type MemoryGroup = ChangeGroup<MemoryChange>;

/** A kernel that holds one entry per service port, and the entries `first` and `last` of settings. */
export class MemoryKernel {
  readonly entries: Map<string, string> = new Map();
  /** Entries that the kernel refuses to change. */
  readonly refused: Set<string> = new Set();
  /** Reads and writes, in order. */
  readonly calls: string[] = [];
  /** Whether a refusal names its group. */
  namesGroup = true;
  /** Called before a read, before a write, and after a write that the kernel took. What it throws ends the apply. */
  on: (moment: 'read' | 'write' | 'written') => void = () => {};

  /** Entries as `id=value`, sorted. */
  get text(): readonly string[] {
    return [...this.entries].map(([id, value]) => `${id}=${value}`).toSorted();
  }
}

/** A service port in the kernel, by the value of its entry. */
export interface HeldEntry extends HeldService {
  readonly value: string;
}

/** The entry that a service port renders to: its endpoints. Throws `HostError` for one with more than three. */
function render({ key, knownEndpoints }: ServiceForwarding): string {
  if (knownEndpoints.length > 3) throw new HostError('memory.large', `cannot render ${key}: more than three endpoints`);
  return knownEndpoints.map(({ address }) => address).join(' ');
}

/** The smallest driver, over a `MemoryKernel`. */
export class MemoryDriver implements Driver<MemoryGroup, MemoryChange>, GroupWriter<MemoryGroup, MemoryChange> {
  readonly atomicity: Atomicity = 'transaction';
  readonly limit = 4;
  readonly refusalBudget = 8;
  /** The wanted value of both settings. */
  settings = 'on';
  /** Service ports whose entries another process may have changed; read after drift. */
  readonly foreign: Set<ServicePortKey> = new Set();
  readonly #kernel: MemoryKernel;
  readonly #tracker: ServiceTracker<HeldEntry>;
  readonly isBlocking = true;
  readonly clock: Pick<Clock, 'sleep'>;
  #settings = new Map<string, string>();

  constructor(kernel: MemoryKernel, tracker: ServiceTracker<HeldEntry>, clock: Pick<Clock, 'sleep'>) {
    this.#kernel = kernel;
    this.#tracker = tracker;
    this.clock = clock;
  }

  forget(): void {
    this.#settings.clear();
  }

  async begin({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<DriverRun<MemoryGroup, MemoryChange>> {
    const isDrift = scope.kind === 'full' && scope.after === 'drift' && this.#settings.size > 0;
    const unknown = isDrift ? new Set(this.foreign) : new Set<ServicePortKey>();
    let stale: readonly string[] = [];
    if (isDrift) this.#read(unknown, table.services);
    else if (scope.kind === 'full') stale = this.#readAll(table.services);
    signal.throwIfAborted();
    return {
      unknown: scope.kind === 'full' ? unknown : undefined,
      writer: this,
      before: () => [this.#setting('first')],
      services: (wishes) => [...wishes].map((wish) => this.#serviceGroup(wish)),
      after: () => [this.#setting('last')],
      stale: () => stale.map((id) => this.#staleGroup(id)),
      finish: () => Promise.resolve(),
    };
  }

  weigh({ length }: readonly MemoryChange[]): number {
    return length;
  }

  async write(
    planned: readonly PlannedGroup<MemoryGroup, MemoryChange>[],
    signal: AbortSignal,
  ): Promise<WriteResult<MemoryGroup>> {
    const kernel = this.#kernel;
    kernel.on('write');
    signal.throwIfAborted();
    const changes = planned.flatMap((one) => one.changes);
    kernel.calls.push(`write ${changes.map(({ id, value }) => (value === undefined ? `-${id}` : id)).join(' ')}`);
    const other = changes.find(({ id, was }) => kernel.entries.get(id) !== was);
    if (other !== undefined) throw new KernelDiffersError(`entry ${other.id}`);
    const refused = planned.find((one) => one.changes.some(({ id }) => kernel.refused.has(id)))?.group;
    if (refused !== undefined) {
      const error = new HostError('memory.refused', 'refused');
      return { status: 'refused', writes: 0, error, group: kernel.namesGroup ? refused : undefined };
    }
    for (const { id, value } of changes) {
      if (value === undefined) kernel.entries.delete(id);
      else kernel.entries.set(id, value);
    }
    kernel.on('written');
    signal.throwIfAborted();
    return { status: 'written', writes: changes.length };
  }

  /** Adopts all entries. Returns the stale ones. */
  #readAll(services: ReadonlyMap<ServicePortKey, ServiceForwarding>): readonly string[] {
    const { entries } = this.#kernel;
    this.#tracker.clear();
    this.#read(services.keys(), services);
    for (const name of ['first', 'last']) this.#settings.set(name, entries.get(name) ?? '');
    return [...entries.keys()].filter((id) => !this.#settings.has(id) && !services.has(id as ServicePortKey));
  }

  #read(keys: Iterable<ServicePortKey>, services: ReadonlyMap<ServicePortKey, ServiceForwarding>): void {
    const { entries, calls, on } = this.#kernel;
    on('read');
    calls.push('read');
    for (const key of keys) {
      const value = entries.get(key);
      const service = services.get(key);
      const isSame = service !== undefined && service.knownEndpoints.length <= 3 && render(service) === value;
      this.#tracker.set(key, value === undefined ? undefined : { value, service: isSame ? service : undefined });
    }
  }

  #serviceGroup({ key, service }: ServiceWish): MemoryGroup {
    let after: HeldEntry | undefined;
    return {
      owner: { kind: 'services', keys: [key] },
      plan: () => {
        after = service && { service, value: render(service) };
        const was = this.#tracker.get(key)?.value;
        return was === after?.value ? [] : [{ id: key, was, value: after?.value }];
      },
      settle: (isApplied) => {
        if (isApplied) this.#tracker.set(key, after);
      },
    };
  }

  #setting(id: 'first' | 'last'): MemoryGroup {
    const was = this.#settings.get(id) ?? '';
    const changes = was === this.settings ? [] : [{ id, was: was === '' ? undefined : was, value: this.settings }];
    return groupOf({ kind: 'settings' }, changes, (isApplied) => {
      if (isApplied) this.#settings.set(id, this.settings);
    });
  }

  #staleGroup(id: string): MemoryGroup {
    const changes = [{ id, was: this.#kernel.entries.get(id), value: undefined }];
    return groupOf({ kind: 'stale', what: `entry ${id}` }, changes, () => {});
  }
}

function groupOf(
  owner: GroupOwner,
  changes: readonly MemoryChange[],
  settle: (isApplied: boolean) => void,
): MemoryGroup {
  return { owner, plan: () => changes, settle };
}
