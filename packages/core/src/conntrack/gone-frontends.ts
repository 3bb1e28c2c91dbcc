import type { ForwardingTable, Frontend, ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { Port } from '../ip/port.ts';
import { type Clock, type Millis, seconds } from '../time.ts';
import { placeOf } from './place-of.ts';

/** A UDP frontend that the applied table had and no table has any more. */
export interface GoneFrontend {
  readonly address: Frontend['address'];
  readonly port: Port;
  /** Endpoints to which the kernel translated its flows, as `address port`. */
  readonly endpoints: ReadonlySet<string>;
}

interface Remembered {
  readonly frontend: GoneFrontend;
  readonly since: Millis;
}

/** A datagram that was being translated during the apply enters the connection tracking within this time. */
const settleTime: Millis = seconds(1);
/** The oldest are forgotten beyond this number; their flows end by their own timeout (30 to 120 s without a datagram). */
const maxRemembered = 10_000;

/**
 * UDP frontends of deleted Services and removed ports (kubernetes/kubernetes#141371). Their flows would go on to the old
 * endpoints for as long as the client sends, and no table names them. Each is remembered until a look for stale flows has
 * succeeded that began one second after the apply.
 */
export class GoneFrontends {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #all: readonly Remembered[] = [];
  #current: readonly GoneFrontend[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Another array whenever it differs. */
  get current(): readonly GoneFrontend[] {
    return this.#current;
  }

  /** Remembers frontends that have just left the kernel. */
  add(frontends: readonly GoneFrontend[]): void {
    if (frontends.length === 0) return;
    const since = this.#clock.monotonic();
    this.#set([...this.#all, ...frontends.map((frontend) => ({ frontend, since }))].slice(-maxRemembered));
  }

  /** A look for flows of the current frontends, which began at `start`, has succeeded. */
  noteLook(start: Millis): void {
    if (this.#all.length > 0) this.#set(this.#all.filter(({ since }) => start - since < settleTime));
  }

  #set(all: readonly Remembered[]): void {
    this.#all = all;
    this.#current = all.map(({ frontend }) => frontend);
  }
}

/** UDP frontends of `applied` that `table` lacks, among the services that the delta between the two names. */
export function goneFrontends(
  applied: ForwardingTable,
  table: ForwardingTable,
  { upserted, removed }: TableDelta,
): readonly GoneFrontend[] {
  const keys = [...removed, ...upserted.map(({ key }) => key)];
  return keys.flatMap((key) => {
    const before = applied.services.get(key);
    return before?.protocol === 'UDP' ? goneOf(before, table.services.get(key)) : [];
  });
}

function goneOf(before: ServiceForwarding, after: ServiceForwarding | undefined): readonly GoneFrontend[] {
  const kept = new Set(after?.frontends.map(({ address, port }) => placeOf(address, port)));
  const gone = before.frontends.filter(({ address, port }) => !kept.has(placeOf(address, port)));
  if (gone.length === 0) return [];
  const endpoints = new Set(before.knownEndpoints.map(({ address, port }) => placeOf(address, port)));
  return gone.map(({ address, port }) => ({ address, port, endpoints }));
}
