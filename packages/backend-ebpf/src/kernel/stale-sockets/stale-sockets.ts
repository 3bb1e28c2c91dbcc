import { constants } from 'node:os';
import {
  abortable,
  type Clock,
  HostError,
  type IpFamily,
  type Logger,
  type Millis,
  millis,
  seconds,
} from '@switchyard/core';
import { NativeError, type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import type { MapSet } from '../kernel.ts';
import { type NetworkNamespace, networkNamespaces } from './network-namespaces.ts';
import { type ConnectedSocket, destinationOf, destroySocket, listConnectedUdp } from './socket-diag.ts';
import { addStaleFlows, type GoneEndpoint, type StaleFlow, type StaleFlows } from './stale-flows.ts';

/** Whose sockets are looked for where. */
export interface StaleSocketsOptions {
  readonly ipFamily: IpFamily;
  /** The maps at this moment: they are exchanged when they grow. */
  readonly maps: () => Pick<MapSet, 'flows'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Which namespaces to visit, undefined for a pause; default: all of this machine. */
  readonly namespaces?: () => Iterable<NetworkNamespace | undefined>;
}

/** What one sweep did. */
export interface SweepResult {
  readonly destroyed: number;
  /** How many namespaces were visited; none where no socket was led to an endpoint that is gone. */
  readonly visited: number;
}

/** For so long the event loop waits at most, but for one system call. */
const maxSlice: Millis = millis(4);
/**
 * Sockets are looked for once more after this: one whose connect() was under way while the endpoint went may have been listed before
 * it was connected.
 */
const secondLook: Millis = seconds(1);

/**
 * Destroys connected UDP sockets whose endpoint is gone, so that their processes notice and connect anew, as kube-proxy's conntrack
 * clean-up makes them. Only those that programs led there: what connects to a pod's own address is nobody's business. TCP sockets
 * find out by themselves.
 */
export class StaleSockets {
  readonly #options: StaleSocketsOptions;
  #noted: GoneEndpoint[] = [];
  /** Resolved when some are noted. */
  #wake = Promise.withResolvers<void>();
  /** What was not possible is warned of once. */
  #hasWarned = false;

  constructor(options: StaleSocketsOptions) {
    this.#options = options;
  }

  /** To be called when a change was written that no longer names these endpoints. What `run` does about it comes later. */
  note(gone: readonly GoneEndpoint[]): void {
    if (gone.length === 0) return;
    this.#noted.push(...gone);
    this.#wake.resolve();
  }

  /** Sweeps whenever endpoints are noted, and a second later again, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let again: readonly GoneEndpoint[] = [];
    while (!signal.aborted) {
      try {
        if (again.length === 0) await abortable(this.#wake.promise, signal);
        this.#wake = Promise.withResolvers();
        const fresh = this.#noted;
        this.#noted = [];
        await this.#sweepAndTell([...again, ...fresh], signal);
        again = fresh;
        await clock.sleep(secondLook, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
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

  async #sweepAndTell(gone: readonly GoneEndpoint[], signal: AbortSignal): Promise<void> {
    const { ipFamily, logger, clock } = this.#options;
    try {
      const start = clock.monotonic();
      const { destroyed, visited } = await this.sweep(gone, signal);
      if (visited === 0) return;
      const duration = clock.monotonic() - start;
      logger.debug('UDP sockets of endpoints that are gone destroyed', { ipFamily, destroyed, visited, duration });
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      const log = this.#hasWarned ? logger.debug : logger.warn;
      this.#hasWarned = true;
      const text = 'connected UDP sockets stay with endpoints that are gone until their processes connect anew';
      log.call(logger, text, { ipFamily, error });
    }
  }

  /** How many were destroyed. Takes those that were found out of `flows`. */
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

/** EINVAL: the file below which a namespace was mounted; runtimes that were killed leave such behind. */
const vanished: ReadonlySet<number> = new Set([constants.errno.ENOENT, constants.errno.ESRCH, constants.errno.EINVAL]);

/** Undefined when the namespace went. */
function openIn(netns: string): NetlinkSocket | undefined {
  try {
    return openNetlinkSocket({ protocol: 'sockDiag', netns });
  } catch (error) {
    if (error instanceof NativeError && vanished.has(error.errno)) return undefined;
    throw error;
  }
}
