import {
  addressAndPort,
  type Clock,
  type Endpoint,
  type LoopbackNodePort,
  type Millis,
  type Random,
} from '@switchyard/core';

/** Maximum number of pinned clients per NodePort. Sources are loopback addresses, nearly always a single one. */
const maxPins = 1024;

interface Pin {
  readonly place: string;
  /** Monotonic. */
  readonly lastUsed: Millis;
}

/**
 * Chooses endpoints for the connections of one NodePort: at random, or with session affinity the one that the client's last
 * connection got, until the client has made none for the timeout.
 */
export class EndpointChoice {
  readonly #clock: Clock;
  readonly #random: Random;
  #nodePort: LoopbackNodePort;
  /** By source address; the one used last at the end. */
  readonly #pins = new Map<string, Pin>();

  constructor(nodePort: LoopbackNodePort, { clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#nodePort = nodePort;
    this.#clock = clock;
    this.#random = random;
  }

  /** Sets the newest endpoints and affinity. Pins to removed endpoints have no effect. */
  update(nodePort: LoopbackNodePort): void {
    this.#nodePort = nodePort;
    if (nodePort.sessionAffinity.kind === 'none') this.#pins.clear();
  }

  /** Returns up to `count` different endpoints in the order in which to try them, and pins the client to the first. */
  candidates(source: string, count: number): readonly Endpoint[] {
    const { endpoints } = this.#nodePort;
    const pinned = this.#pinned(source);
    const chosen = new Set<Endpoint>(pinned === undefined ? [] : [pinned]);
    while (chosen.size < Math.min(count, endpoints.length)) {
      const one = endpoints[Math.floor(this.#random() * endpoints.length)];
      if (one !== undefined) chosen.add(one);
    }
    const [first] = chosen;
    if (first !== undefined) this.pin(source, first);
    return [...chosen];
  }

  /** Pins the client to an endpoint, if the Service has session affinity. */
  pin(source: string, endpoint: Endpoint): void {
    if (this.#nodePort.sessionAffinity.kind === 'none') return;
    this.#pins.delete(source);
    this.#pins.set(source, {
      place: addressAndPort(endpoint.address, endpoint.port),
      lastUsed: this.#clock.monotonic(),
    });
    const [oldest] = this.#pins.keys();
    if (this.#pins.size > maxPins && oldest !== undefined) this.#pins.delete(oldest);
  }

  #pinned(source: string): Endpoint | undefined {
    const { sessionAffinity, endpoints } = this.#nodePort;
    const pin = this.#pins.get(source);
    if (sessionAffinity.kind === 'none' || pin === undefined) return undefined;
    if (this.#clock.monotonic() - pin.lastUsed > sessionAffinity.timeout) return undefined;
    return endpoints.find(({ address, port }) => addressAndPort(address, port) === pin.place);
  }
}
