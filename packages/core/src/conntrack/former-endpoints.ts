import type { ForwardingTable, Frontend, ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { Port } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import { type Clock, type Millis, seconds } from '../time.ts';
import { placeOf, servingPlaces } from './place-of.ts';

/** Endpoints to which the kernel translated flows of one UDP frontend until a moment ago. */
export interface FormerEndpoints {
  readonly service: ServicePortKey;
  readonly address: Frontend['address'];
  readonly port: Port;
  /** As `address port`. */
  readonly endpoints: ReadonlySet<string>;
}

interface Remembered {
  readonly former: FormerEndpoints;
  readonly since: Millis;
}

/** A datagram that was being translated during the apply enters the connection tracking within this time. */
const settleTime: Millis = seconds(1);
/** The oldest are forgotten beyond this number; their flows end by their own timeout (30 to 120 s without a datagram). */
const maxRemembered = 10_000;

/**
 * Remembers the endpoints of UDP frontends that were just removed (deleted Service, removed port or address;
 * kubernetes/kubernetes#141371), and endpoints that a frontend has just lost, because the frontend may be removed next. No
 * table names them, and their flows would go on for as long as the client sends. Each is remembered until a look for stale
 * flows has succeeded that began one second after the kernel took the change.
 */
export class RecentEndpoints {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The kernel still has the rules of these. */
  #held: readonly FormerEndpoints[] = [];
  #all: readonly Remembered[] = [];
  #current: readonly FormerEndpoints[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Another array whenever it differs. */
  get current(): readonly FormerEndpoints[] {
    return this.#current;
  }

  /**
   * An apply is over that was to take `former` out of the kernel, and did so but for the services of `failed`. Those are
   * held back until an apply succeeds. `isNew`: there are more to look for; `forgotten`: how many exceeded the bound.
   */
  noteApplied(
    former: readonly FormerEndpoints[],
    failed: Pick<ReadonlySet<ServicePortKey>, 'has'>,
  ): { readonly isNew: boolean; readonly forgotten: number } {
    if (former.length === 0 && this.#held.length === 0) return { isNew: false, forgotten: 0 };
    const since = this.#clock.monotonic();
    const { held = [], out = [] } = Object.groupBy([...this.#held, ...former], ({ service }) =>
      failed.has(service) ? 'held' : 'out',
    );
    const all = [...this.#all, ...out.map((former) => ({ former, since }))];
    this.#held = held.slice(-maxRemembered);
    this.#set(all.slice(-maxRemembered));
    const forgotten = held.length - this.#held.length + all.length - this.#all.length;
    return { isNew: out.length > 0, forgotten };
  }

  /** A look for flows to the current ones, which began at `start`, has succeeded. */
  noteLook(start: Millis): void {
    if (this.#all.length > 0) this.#set(this.#all.filter(({ since }) => start - since < settleTime));
  }

  #set(all: readonly Remembered[]): void {
    this.#all = all;
    this.#current = all.map(({ former }) => former);
  }
}

/**
 * The endpoints that UDP frontends of `applied` lose with `table`, among the services that the delta between the two names:
 * removed frontends lose all their endpoints, others those that no longer serve.
 */
export function formerEndpoints(
  applied: ForwardingTable,
  table: ForwardingTable,
  { upserted, removed }: TableDelta,
): readonly FormerEndpoints[] {
  const keys = [...removed, ...upserted.map(({ key }) => key)];
  return keys.flatMap((key) => {
    const before = applied.services.get(key);
    return before?.protocol === 'UDP' ? lostBy(before, table.services.get(key)) : [];
  });
}

function lostBy(before: ServiceForwarding, after: ServiceForwarding | undefined): readonly FormerEndpoints[] {
  const all = new Set(before.knownEndpoints.map(({ address, port }) => placeOf(address, port)));
  const noLonger = after === undefined ? all : servingPlaces(before).difference(servingPlaces(after));
  const kept = new Set(after?.frontends.map(({ address, port }) => placeOf(address, port)));
  return before.frontends.flatMap(({ address, port }) => {
    const endpoints = kept.has(placeOf(address, port)) ? noLonger : all;
    return endpoints.size === 0 ? [] : [{ service: before.key, address, port, endpoints }];
  });
}
