import {
  abortable,
  type Clock,
  InvariantError,
  type IpFamily,
  type Millis,
  millis,
  type PodDetector,
  seconds,
  untilBeat,
} from '@switchyard/core';
import {
  type BpfLink,
  type BpfObject,
  type BpfProgram,
  type Device,
  loadBpfObject,
  type NetlinkSocket,
  openNetlinkSocket,
  readMessages,
  receiveNotices,
} from '@switchyard/native';
import type { MapSet, Wire } from '../kernel.ts';
import type { OpenMapSet } from '../open-map-set.ts';
import { objectFile } from '../programs/object-files.ts';
import { SmallMapWatch, writeElements } from '../small-map.ts';
import {
  bridgesForRules,
  chooseUplinks,
  masqueradeElements,
  type Network,
  readNetwork,
  type UplinkRule,
} from './devices.ts';
import { GuardTable } from './guard-table.ts';
import { defaultWireMarks, type WireMarks } from './guard-rules.ts';
import { removeWire } from './remove-wire.ts';
import { type UplinkOptions, UplinkPrograms } from './uplink-programs.ts';

export interface WirePathOptions extends UplinkOptions {
  /** Owned by the caller. */
  readonly maps: OpenMapSet;
  readonly clock: Clock;
  /** As `Wire.isUsed`. */
  readonly isUsed: (signal: AbortSignal) => Promise<boolean>;
  /** Name patterns of uplinks; empty: see `chooseUplinks`. */
  readonly interfaces: readonly string[];
  readonly marks?: WireMarks;
  readonly object?: string;
  /** Default: true. False, for tests: as on kernels before 6.7, which do not return a route's source address. */
  readonly asksSource?: boolean;
  /** For tests; default: reads it from the kernel. */
  readonly read?: () => Network;
}

/** From a change of devices until they have the program, unless devices change all the time: what changes together is read once. */
const gatherInterval = millis(100);
/** Pause after a listing, as a multiple of its duration: listing hundreds of devices takes milliseconds, and each new pod changes some. */
const restFactor = 20;
/** Longest pause. The next look for faults is after 800 ms, and new devices must have the program by then. */
const maxRest = millis(300);
/** Pause after a failure, because the kernel will refuse the same again for a while. */
const retryInterval = seconds(1);
const noNetwork: Network = { devices: [], addresses: [], defaultDevice: undefined };

/** One family's path for traffic from the network. It outlives the process. Calls run one after another and reject with `HostError`. */
export class WirePath implements Wire {
  readonly ipFamily: IpFamily;
  readonly #options: WirePathOptions;
  readonly #guard: GuardTable;
  readonly #programs: UplinkPrograms;
  readonly #marks: WireMarks;
  #maps: MapSet | undefined;
  #object: BpfObject | undefined;
  #events: DeviceEvents | undefined;
  /** Devices or addresses changed since programs were put in place. */
  #isStale = true;
  #isWarned = false;
  #network: Network = noNetwork;
  /** Of `masq_addresses`. */
  readonly #addresses = new SmallMapWatch();
  #podDetector: PodDetector = { kind: 'none' };
  #needsRules = false;
  /** Resolved by the first `ensure`. */
  #used = Promise.withResolvers<void>();
  #last: Promise<unknown> = Promise.resolve();

  /** Changes nothing in the kernel. */
  constructor(options: WirePathOptions) {
    const { ipFamily, marks = defaultWireMarks } = options;
    this.ipFamily = ipFamily;
    this.#options = options;
    this.#marks = marks;
    this.#guard = new GuardTable({ ...options, marks });
    this.#programs = new UplinkPrograms(options);
  }

  get uplinks(): readonly Device[] {
    return this.#programs.devices;
  }

  isUsed(signal: AbortSignal): Promise<boolean> {
    return this.#options.isUsed(signal);
  }

  /** As `Wire.needsRules`. Stays true, so that rules are not removed and added with the containers of a bridge. */
  async needsRules(podDetector: PodDetector): Promise<boolean> {
    this.#podDetector = podDetector;
    if (this.#needsRules) return true;
    const bridges = this.#bridges(this.#readNetwork());
    if (bridges.length === 0) return false;
    this.#options.logger.info('rules serve packets that enter by bridges', { ipFamily: this.ipFamily, bridges });
    this.#needsRules = true;
    return true;
  }

  /** First the guard table (conntrack and NAT), then addresses, last the programs. Returns writes. */
  ensure(signal: AbortSignal): Promise<number> {
    this.#used.resolve();
    return this.#exclusively(async () => {
      signal.throwIfAborted();
      const maps = this.#options.maps.get();
      const moved = this.#moveTo(maps);
      const guard = await this.#guard.ensure(signal);
      this.#events ??= new DeviceEvents(this.#options.netns);
      return moved + guard + this.#ensureDevices(maps);
    });
  }

  /** Serves new uplinks within 100 ms (300 ms with many) until aborted; idle before `ensure`. Logs failures. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    let pause = gatherInterval;
    while (!signal.aborted) {
      try {
        await abortable(this.#used.promise, signal);
        if (!this.#isStale) await this.#events?.news(signal);
        await clock.sleep(untilBeat(clock, pause), signal);
        pause = await this.#exclusively(async () => this.#followNews());
      } catch (error) {
        if (signal.aborted) return;
        logger.warn('a change of network devices could not be followed', { ipFamily: this.ipFamily, error });
        this.#isStale = true;
        pause = retryInterval;
      }
    }
  }

  /** Differences from the last `ensure`, and new bridges. Cheap. A first look leaves changed devices to `follow`. */
  findFaults(signal: AbortSignal): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      signal.throwIfAborted();
      const faults = this.#findFaults();
      const bridges = this.#needsRules ? [] : this.#bridges(this.#network);
      return [...faults, ...bridges.map((name) => `rules do not serve the bridge ${name} yet, which is new`)];
    });
  }

  /**
   * Links of the programs, for `EbpfKernel.fingerprint`. Undefined where `findFaults` must look: devices or rules changed, or a
   * program is a filter.
   */
  links(): readonly BpfLink[] | undefined {
    if (this.#maps === undefined || this.#object === undefined) return [];
    return this.#hasNews() || this.#guard.findFaults().length > 0 ? undefined : this.#programs.links;
  }

  /** Removes programs, pins and guard table of any process. Returns descriptions of what it removed. Needs no maps. */
  remove(signal: AbortSignal): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      this.#close();
      return removeWire(this.#options, signal);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#exclusively(async () => this.#close());
  }

  /** Brings the programs up to date if devices changed. Returns the pause before the next time. */
  #followNews(): Millis {
    const { clock } = this.#options;
    const maps = this.#maps;
    if (maps === undefined || this.#object === undefined || !this.#hasNews()) return gatherInterval;
    const start = clock.monotonic();
    this.#ensureDevices(maps);
    const pauses = Math.ceil(((clock.monotonic() - start) * restFactor) / gatherInterval);
    return millis(Math.min(Math.max(pauses, 1) * gatherInterval, maxRest));
  }

  #findFaults(): readonly string[] {
    if (this.#maps === undefined || this.#object === undefined) return [];
    const wasStale = this.#isStale;
    if (this.#hasNews()) {
      if (!wasStale) return this.#guard.findFaults();
      this.#renewNetwork();
    }
    return [
      ...this.#guard.findFaults(),
      ...this.#programs.findFaults(this.#wanted(), () => this.#readNetwork().devices),
      ...(this.#addresses.holds(this.#maps.masq_addresses, () => masqueradeElements(this.#network))
        ? []
        : ['masquerade addresses are not those of the network devices']),
    ];
  }

  /** Exchanges the program for one over other maps with the same content, as after growth. Every packet meets one of the two. */
  #moveTo(maps: MapSet): number {
    const before = this.#object;
    if (before === undefined || this.#maps === maps) return 0;
    this.#object = undefined;
    try {
      return this.#ensureDevices(maps);
    } catch (error) {
      this.#object ??= before; // otherwise some links have the new program; the next attempt updates the rest
      throw error;
    } finally {
      if (this.#object !== before) before[Symbol.dispose]();
    }
  }

  #ensureDevices(maps: MapSet): number {
    this.#isStale = true;
    this.#hasNews(); // the network that is read now includes these changes
    this.#renewNetwork();
    const wanted = this.#wanted();
    if (wanted.length === 0 && !this.#isWarned) {
      const { interfaces: patterns, logger } = this.#options;
      const text = 'no network device is an uplink: nothing from outside reaches Services';
      logger.warn(text, { ipFamily: this.ipFamily, patterns });
    }
    this.#isWarned = wanted.length === 0;
    const writes = writeElements(maps.masq_addresses, masqueradeElements(this.#network));
    const all = writes + this.#programs.put(this.#program(maps), wanted, this.#network.devices);
    this.#isStale = false;
    return all;
  }

  /** Whether devices or addresses changed since programs were put in place. Reads none of them. */
  #hasNews(): boolean {
    if (this.#events?.hasChanged() === true) this.#isStale = true;
    return this.#isStale;
  }

  #wanted(): readonly Device[] {
    return chooseUplinks(this.#network, this.#rule);
  }

  #bridges(network: Network): readonly string[] {
    return bridgesForRules(network, this.#rule).map(({ name }) => name);
  }

  get #rule(): UplinkRule {
    return { patterns: this.#options.interfaces, podDetector: this.#podDetector };
  }

  #renewNetwork(): void {
    this.#network = this.#readNetwork();
    this.#addresses.forget();
  }

  #readNetwork(): Network {
    const { netns, read = () => readNetwork(this.ipFamily, netns) } = this.#options;
    return read();
  }

  #program(maps: MapSet): BpfProgram {
    const { object = objectFile('wire'), asksSource = true } = this.#options;
    const { service, reject } = this.#marks;
    this.#object ??= loadBpfObject(object, {
      maps: new Map(Object.entries(maps)),
      constants: {
        family: this.ipFamily === 'IPv4' ? 4 : 6,
        service_mark: service,
        reject_mark: reject,
        asks_source: asksSource ? 1 : 0,
      },
    });
    this.#maps = maps;
    const program = this.#object.programs.get('lb_in');
    if (program === undefined) throw new InvariantError('the wire program is not in its object file');
    return program;
  }

  #close(): void {
    this.#guard[Symbol.dispose]();
    this.#programs[Symbol.dispose]();
    this.#object?.[Symbol.dispose]();
    this.#object = undefined;
    this.#events?.[Symbol.dispose]();
    this.#events = undefined;
    this.#maps = undefined;
    this.#isStale = true;
    this.#network = noNetwork;
    this.#used = Promise.withResolvers();
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** RTNLGRP_LINK; addresses and routes of IPv4 and IPv6. */
const groups: readonly number[] = [1, 5, 9, 7, 11];
/** RTM_NEWROUTE and RTM_DELROUTE. */
const routeMessages: ReadonlySet<number> = new Set([24, 25]);
/** Offset of the destination's prefix length in `struct rtmsg`. */
const prefixLengthOffset = 1;

/** Detects possible changes of devices, addresses or default routes of a network namespace. */
class DeviceEvents implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #buffer = new Uint8Array(1 << 16);
  /** Ends the wait of `news`. */
  #wake = new AbortController();

  /** Listens from now on. Throws `NativeError`. */
  constructor(netns: string | undefined) {
    this.#socket = openNetlinkSocket({ protocol: 'route', groups, netns });
  }

  /** Whether something may have changed since the last call. Never waits. */
  hasChanged(): boolean {
    const notices = receiveNotices(this.#socket, this.#buffer);
    const hasChanged = Array.from(notices, matters).includes(true);
    if (hasChanged) this.#wake.abort();
    return hasChanged;
  }

  /** Resolves when something may have changed, and on disposal. One call at a time. Rejects with `signal.reason`. */
  async news(signal: AbortSignal): Promise<void> {
    this.#wake = new AbortController();
    const wake = this.#wake.signal;
    try {
      await this.#socket.readable(AbortSignal.any([signal, wake]));
    } catch (error) {
      if (signal.aborted || !wake.aborted) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#wake.abort();
    this.#socket[Symbol.dispose]();
  }
}

/** Each pod adds and removes routes; only default routes concern uplinks. */
function matters(datagram: Uint8Array | undefined): boolean {
  if (datagram === undefined) return true; // the lost event may be a change
  for (const { type, start } of readMessages(datagram)) {
    if (!routeMessages.has(type) || datagram[start + prefixLengthOffset] === 0) return true;
  }
  return false;
}
