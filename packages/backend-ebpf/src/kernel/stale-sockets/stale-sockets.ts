import { constants } from 'node:os';
import {
  type Clock,
  cpuTime,
  HostError,
  type IpFamily,
  type Logger,
  type Millis,
  millis,
  seconds,
} from '@switchyard/core';
import { BoundedRunner, type RunOutcome } from '@switchyard/core/engine';
import {
  type BpfEntries,
  NativeError,
  type NetlinkSocket,
  type NetworkNamespace,
  networkNamespaces,
  openNetlinkSocket,
} from '@switchyard/native';
import type { MapSet } from '../kernel.ts';
import { type ConnectedSocket, destinationOf, destroySocket, listConnectedUdp } from './socket-diag.ts';
import { flowKinds, offsetOf, sizeOf } from '../../render/layouts.ts';

export interface StaleSocketsOptions {
  readonly ipFamily: IpFamily;
  readonly maps: () => Pick<MapSet, 'flows'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Namespaces to visit, undefined for a pause; default: all of this machine. */
  readonly namespaces?: () => Iterable<NetworkNamespace | undefined>;
}

export interface SweepResult {
  readonly destroyed: number;
  /** Number of visited namespaces; 0 if no socket was connected to a deleted endpoint. */
  readonly visited: number;
}

/** Maximum time for which the event loop is blocked, apart from one system call. */
const maxSlice: Millis = millis(4);
/** A socket whose connect() ran during the deletion may have been listed before it was connected. */
const secondLook: Millis = seconds(1);
const minGap: Millis = millis(100);
/** Pause after a sweep, as a multiple of its CPU time, so that sweeps take at most a fifth of a core while endpoints change. */
const restFactor = 4;
/** A sweep without endpoints does nothing, and a failed one is not repeated. */
const unused = { resyncInterval: seconds(3600), retry: { first: secondLook, max: secondLook } };

/** Destroys connected UDP sockets of deleted endpoints, as kube-proxy's conntrack clean-up does. Only those that programs connected there. */
export class StaleSockets {
  readonly #options: StaleSocketsOptions;
  readonly #runner: BoundedRunner;
  /** Endpoints to sweep for, with the times of their deletion. */
  #noted: readonly { readonly gone: readonly GoneEndpoint[]; readonly since: Millis }[] = [];
  /** A warning was logged; further failures are logged at debug. */
  #hasWarned = false;

  constructor(options: StaleSocketsOptions) {
    const { clock } = options;
    this.#options = options;
    this.#runner = new BoundedRunner({ clock, minGap, ...unused, run: (_, signal) => this.#look(signal) });
  }

  /** Call after writing a change that deletes these endpoints. `run` handles them later. */
  note(gone: readonly GoneEndpoint[]): void {
    if (gone.length === 0) return;
    this.#noted = [...this.#noted, { gone, since: this.#options.clock.monotonic() }];
    this.#runner.poke();
  }

  /** Sweeps soon after each `note`, and again a second later, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#runner.run(signal);
  }

  /** Destroys the sockets that lead to these endpoints. Rejects with `HostError`. */
  async sweep(gone: Iterable<GoneEndpoint>, signal: AbortSignal): Promise<SweepResult> {
    const { clock, maps, namespaces = networkNamespaces } = this.#options;
    let sliceEnd = clock.monotonic() + maxSlice;
    const pause = async (): Promise<void> => {
      if (clock.monotonic() < sliceEnd) return;
      await clock.sleep(millis(0), signal);
      sliceEnd = clock.monotonic() + maxSlice;
    };
    const generationById = new Map([...gone].map(({ id, generation }) => [id, generation]));
    const flows: StaleFlows = new Map();
    for (const slice of maps().flows.slices()) {
      addStaleFlows(flows, slice, generationById);
      await pause();
    }
    if (flows.size === 0) return { destroyed: 0, visited: 0 };
    let destroyed = 0;
    let visited = 0;
    for (const namespace of namespaces()) {
      if (namespace !== undefined) {
        destroyed += this.#sweepNamespace(namespace, flows);
        visited++;
        if (flows.size === 0) break;
      }
      await pause();
    }
    return { destroyed, visited };
  }

  async #look(signal: AbortSignal): Promise<RunOutcome> {
    if (this.#noted.length === 0) return { status: 'done' };
    const { clock } = this.#options;
    const [start, cpuStart] = [clock.monotonic(), cpuTime()];
    await this.#sweepAndTell(
      this.#noted.flatMap(({ gone }) => gone),
      signal,
    );
    this.#noted = this.#noted.filter(({ since }) => start - since < secondLook);
    await clock.sleep(millis(restFactor * (cpuTime() - cpuStart)), signal);
    return this.#noted.length === 0 ? { status: 'done' } : { status: 'retry', after: secondLook };
  }

  async #sweepAndTell(gone: readonly GoneEndpoint[], signal: AbortSignal): Promise<void> {
    const { ipFamily, logger, clock } = this.#options;
    try {
      const start = clock.monotonic();
      const { destroyed, visited } = await this.sweep(gone, signal);
      if (visited === 0) return;
      const duration = clock.monotonic() - start;
      logger.debug('UDP sockets of deleted endpoints destroyed', { ipFamily, destroyed, visited, duration });
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      const log = this.#hasWarned ? logger.debug : logger.warn;
      this.#hasWarned = true;
      const text = 'connected UDP sockets stay with deleted endpoints until their processes connect again';
      log.call(logger, text, { ipFamily, error });
    }
  }

  /** Returns the number of destroyed sockets. Deletes the found ones from `flows`. */
  #sweepNamespace({ path }: NetworkNamespace, flows: StaleFlows): number {
    using socket = openIn(path);
    if (socket === undefined) return 0;
    let destroyed = 0;
    for (const found of listConnectedUdp(socket, this.#options.ipFamily, (cookie) => flows.has(cookie))) {
      const led = flows.get(found.cookie) ?? [];
      flows.delete(found.cookie);
      if (led.some((flow) => leadsTo(found, flow)) && destroySocket(socket, found)) destroyed++;
    }
    return destroyed;
  }
}

/** A socket may have been connected elsewhere since. */
function leadsTo(socket: ConnectedSocket, flow: StaleFlow): boolean {
  const { address, port } = destinationOf(socket);
  return port === flow.port && Buffer.compare(address, flow.address) === 0;
}

/** EINVAL: a plain file at which no namespace is mounted; killed runtimes leave such files. */
const vanished: ReadonlySet<number> = new Set([constants.errno.ENOENT, constants.errno.ESRCH, constants.errno.EINVAL]);

/** Undefined when the namespace was deleted. */
function openIn(netns: string): NetlinkSocket | undefined {
  try {
    return openNetlinkSocket({ protocol: 'sockDiag', netns });
  } catch (error) {
    if (error instanceof NativeError && vanished.has(error.errno)) return undefined;
    throw error;
  }
}

/** A deleted endpoint. */
export interface GoneEndpoint {
  readonly id: number;
  /** Generation that the id had for this endpoint. */
  readonly generation: number;
}

/** Destination of a socket that programs connected to a deleted endpoint. */
interface StaleFlow {
  /** 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
}

const udp = 17;
const key = {
  size: sizeOf('flow_key'),
  socket: offsetOf('flow_key', 'socket'),
  address: offsetOf('flow_key', 'address'),
  port: offsetOf('flow_key', 'port'),
  protocol: offsetOf('flow_key', 'protocol'),
  kind: offsetOf('flow_key', 'kind'),
} as const;
const value = {
  size: sizeOf('flow_value'),
  endpoint: offsetOf('flow_value', 'endpoint'),
  generation: offsetOf('flow_value', 'generation'),
} as const;

/** Destinations by socket cookie. */
export type StaleFlows = Map<bigint, readonly StaleFlow[]>;

/** Adds the UDP sockets that programs connected to deleted endpoints (`gone`: generation by id). */
export function addStaleFlows(
  found: StaleFlows,
  { keys, values, count }: BpfEntries,
  gone: ReadonlyMap<number, number>,
): void {
  const keyView = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const valueView = new DataView(values.buffer, values.byteOffset, values.byteLength);
  for (let index = 0; index < count; index++) {
    const [at, valueAt] = [index * key.size, index * value.size];
    if (keys[at + key.protocol] !== udp || keys[at + key.kind] !== flowKinds.reverse) continue;
    const generation = gone.get(valueView.getUint32(valueAt + value.endpoint, true));
    if (generation !== valueView.getUint32(valueAt + value.generation, true)) continue;
    const cookie = keyView.getBigUint64(at + key.socket, true);
    const address = keys.slice(at + key.address, at + key.address + 16);
    found.set(cookie, [...(found.get(cookie) ?? []), { address, port: keyView.getUint16(at + key.port) }]);
  }
}
