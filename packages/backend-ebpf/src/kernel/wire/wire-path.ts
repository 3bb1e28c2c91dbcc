import {
  type Clock,
  InvariantError,
  type IpFamily,
  millis,
  type PodDetector,
  seconds,
  systemClock,
  untilBeat,
} from '@switchyard/core';
import { type BpfObject, type BpfProgram, type Device, loadBpfObject } from '@switchyard/native';
import type { MapSet } from '../kernel.ts';
import { objectFile } from '../programs/object-files.ts';
import { holdsElements, writeElements } from '../small-map.ts';
import { DeviceEvents } from './device-events.ts';
import { chooseUplinks, masqueradeElements, type Network, readNetwork } from './devices.ts';
import { GuardTable } from './guard-table.ts';
import { checkMarks, defaultWireMarks, type WireMarks } from './marks.ts';
import { removeWire } from './remove-wire.ts';
import { type UplinkOptions, UplinkPrograms } from './uplink-programs.ts';

/** Where the wire path is, and over which maps. */
export interface WirePathOptions extends UplinkOptions {
  /** They stay the caller's. */
  readonly maps: MapSet;
  /** Patterns of names of uplinks; empty: see `chooseUplinks`. */
  readonly interfaces: readonly string[];
  /** Of the table applied last. Default: none. */
  readonly podDetector?: () => PodDetector;
  readonly marks?: WireMarks;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Of the compiled program; default: that of this build. */
  readonly object?: string;
  /** Default: true. False: as kernels before 6.7 are, which do not tell a route's source address; for tests. */
  readonly asksSource?: boolean;
}

/** A new device has the program after as long at most, unless devices change all the time. */
const pollInterval = millis(100);
/** Listing hundreds of devices takes milliseconds, and each pod that starts changes some: after it so many times as long is rested. */
const restFactor = 20;
/** Whoever looks for faults looks again after 400 ms: what is new then must have been seen to. */
const maxRest = millis(300);
/** After a failure: what the kernel refused once it refuses for a while. */
const retryInterval = seconds(1);

/**
 * One family's part of what comes in from the network: the guard table, the program on every uplink, and as whom packets are
 * masqueraded. Everything survives the process; a new one finds it again and changes only what is different. Calls may overlap,
 * they are done one after another. Rejects with `HostError`.
 */
export class WirePath implements AsyncDisposable {
  readonly ipFamily: IpFamily;
  readonly #options: WirePathOptions;
  readonly #guard: GuardTable;
  readonly #programs: UplinkPrograms;
  readonly #marks: WireMarks;
  #maps: MapSet;
  #object: BpfObject | undefined;
  #events: DeviceEvents | undefined;
  /** Devices or addresses changed since programs were put in place. */
  #isStale = true;
  #isWarned = false;
  #network: Network = { devices: [], addresses: [], defaultDevice: undefined };
  #last: Promise<unknown> = Promise.resolve();

  /** Touches nothing yet. */
  constructor(options: WirePathOptions) {
    const { ipFamily, marks = defaultWireMarks, maps } = options;
    checkMarks(marks);
    this.ipFamily = ipFamily;
    this.#options = options;
    this.#marks = marks;
    this.#maps = maps;
    this.#guard = new GuardTable({ ...options, marks });
    this.#programs = new UplinkPrograms(options);
  }

  /** The devices that have the program now. */
  get uplinks(): readonly Device[] {
    return this.#programs.devices;
  }

  /** Devices and addresses as they were when last looked at. */
  get network(): Network {
    return this.#network;
  }

  /**
   * Makes all of it as it should be: first the guard table, for entries are of no use without conntrack and NAT; then addresses; last
   * the programs. Returns writes: none when nothing was missing.
   */
  ensure(signal: AbortSignal): Promise<number> {
    return this.#exclusively(async () => {
      signal.throwIfAborted();
      const guard = await this.#guard.ensure(signal);
      this.#events ??= new DeviceEvents(this.#options.netns);
      return guard + this.#ensureDevices();
    });
  }

  /** Goes over to other maps that hold the same, as after they have grown: no packet meets neither. */
  useMaps(maps: MapSet, signal: AbortSignal): Promise<number> {
    return this.#exclusively(async () => {
      signal.throwIfAborted();
      const before = { maps: this.#maps, object: this.#object };
      this.#maps = maps;
      if (before.object === undefined) return 0; // nothing is attached by this process; `ensure` will
      this.#object = undefined;
      try {
        const writes = this.#ensureDevices();
        before.object[Symbol.dispose]();
        return writes;
      } catch (error) {
        if (this.#object === undefined) this.#object = before.object;
        else before.object[Symbol.dispose](); // links are half-way; the rest is done when it is tried again
        throw error;
      }
    });
  }

  /** Attaches the program to new uplinks, 100 ms after they are there (300 ms at most where there are many), until aborted. A failure is logged; `findFaults` sees it too. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock = systemClock, logger } = this.#options;
    while (!signal.aborted) {
      let pause = pollInterval;
      try {
        await this.#exclusively(async () => {
          if (this.#object === undefined || !this.#hasNews()) return;
          const start = clock.monotonic();
          this.#ensureDevices();
          const polls = Math.ceil(((clock.monotonic() - start) * restFactor) / pollInterval);
          pause = millis(Math.min(Math.max(polls, 1) * pollInterval, maxRest));
        });
      } catch (error) {
        logger.warn('a change of network devices could not be followed', { ipFamily: this.ipFamily, error });
        pause = retryInterval;
      }
      await clock.sleep(untilBeat(clock, pause), signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  }

  /**
   * What is not as `ensure` left it, in words. Cheap: meant for twice a second. Empty before `ensure`. A change of devices or addresses
   * that nobody has seen before is not a fault yet: it is for `follow` to see to.
   */
  findFaults(signal: AbortSignal): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      signal.throwIfAborted();
      if (this.#object === undefined) return [];
      const wasStale = this.#isStale;
      if (this.#hasNews()) {
        if (!wasStale) return this.#guard.findFaults();
        this.#network = readNetwork(this.ipFamily, this.#options.netns);
      }
      return [
        ...this.#guard.findFaults(),
        ...this.#programs.findFaults(this.#wanted(), () => readNetwork(this.ipFamily, this.#options.netns).devices),
        ...(holdsElements(this.#maps.masq_addresses, masqueradeElements(this.#network))
          ? []
          : ['masquerade addresses are not those of the network devices']),
      ];
    });
  }

  /** Takes programs, pins and guard table away, of whichever process. In words; nothing for nothing. Needs no maps. */
  remove(signal: AbortSignal): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      this.#close();
      return removeWire(this.#options, signal);
    });
  }

  /** Forwarding stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#exclusively(async () => this.#close());
  }

  #ensureDevices(): number {
    this.#isStale = true;
    this.#hasNews(); // what is read now is news no more
    this.#network = readNetwork(this.ipFamily, this.#options.netns);
    const wanted = this.#wanted();
    if (wanted.length === 0 && !this.#isWarned) {
      const { interfaces: patterns, logger } = this.#options;
      const text = 'no network device is an uplink: nothing from outside reaches Services';
      logger.warn(text, { ipFamily: this.ipFamily, patterns });
    }
    this.#isWarned = wanted.length === 0;
    const writes = writeElements(this.#maps.masq_addresses, masqueradeElements(this.#network));
    const all = writes + this.#programs.put(this.#program(), wanted, this.#network.devices);
    this.#isStale = false;
    return all;
  }

  /** Whether devices or addresses changed since programs were put in place. Reads none of them. */
  #hasNews(): boolean {
    if (this.#events?.hasChanged() === true) this.#isStale = true;
    return this.#isStale;
  }

  #wanted(): readonly Device[] {
    const { interfaces: patterns, podDetector = () => ({ kind: 'none' }) } = this.#options;
    return chooseUplinks(this.#network, { patterns, podDetector: podDetector() });
  }

  #program(): BpfProgram {
    const { object = objectFile('wire'), asksSource = true } = this.#options;
    const { service, reject } = this.#marks;
    this.#object ??= loadBpfObject(object, {
      maps: new Map(Object.entries(this.#maps)),
      constants: {
        family: this.ipFamily === 'IPv4' ? 4 : 6,
        service_mark: service,
        reject_mark: reject,
        asks_source: asksSource ? 1 : 0,
      },
    });
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
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
