import { type Clock, HostError, millis, type Millis, systemClock } from '@switchyard/core';
import type { MachineEvidence } from '../model/test-environment.ts';
import { KernelShortage } from './kernel-shortage.ts';
import { type LabHost, type LoadResult, type LoadRun, startEchoServer, startLoad } from '@switchyard/lab';

/** Requests a second: fewer would miss a short stall, more would be a load of their own. */
const rate = 20;
const timeout = millis(1500);
/** The longest load; then another one begins. */
const longest = millis(3_600_000);
/** Time that results are kept: a check is judged when its case ends. */
const kept = 20 * 60_000;
const port = 7999;

/** A request of the watch, and how long it took from the time it was due: a late start counts. */
interface Control {
  readonly at: number;
  readonly took: number;
}

/**
 * Shows whether the machine serves requests in time: a load generator and an echo server like those of the cases, in one host, without a
 * proxy between them. If these requests are late, those of the cases may be, too, and say nothing about the proxy.
 */
export class MachineWatch implements AsyncDisposable {
  readonly #start: () => Pick<LoadRun, typeof Symbol.asyncIterator | typeof Symbol.asyncDispose>;
  readonly #clock: Clock;
  readonly #shortage: KernelShortage;
  #controls: Control[] = [];
  #isOver = false;
  #run: AsyncDisposable | undefined;
  readonly #following: Promise<void>;
  #failure: unknown;

  /** Public for tests; use `start`. */
  constructor(
    start: () => Pick<LoadRun, typeof Symbol.asyncIterator | typeof Symbol.asyncDispose>,
    clock: Clock = systemClock,
    shortage: KernelShortage = new KernelShortage(),
  ) {
    this.#shortage = shortage;
    this.#start = start;
    this.#clock = clock;
    this.#following = this.#follow();
  }

  /** Starts both processes in a host of the lab, which is killed with the lab. */
  static start(host: LabHost): MachineWatch {
    startEchoServer(host, { pod: 'control', node: host.name, tcp: [port], udp: [] });
    return new MachineWatch(() =>
      startLoad(host, { url: `tcp://127.0.0.1:${port}`, rate, timeout, duration: longest }),
    );
  }

  /**
   * The longest that a request took which was under way between two times (wall clock), and whether the kernel dropped packets. Waits
   * for the requests that are not done. Rejects with `HostError` when the watch has ended.
   */
  async between(from: Millis, to: Millis, signal: AbortSignal): Promise<MachineEvidence> {
    const slowest = await this.#slowest(from, to, signal);
    this.#shortage.read(this.#clock.now());
    return { slowest, shortage: this.#shortage.between(from, to) };
  }

  async #slowest(from: Millis, to: Millis, signal: AbortSignal): Promise<Millis> {
    const patience = this.#clock.now() + timeout + 1000;
    while (!this.#controls.some(({ at }) => at > to)) {
      if (this.#failure !== undefined)
        throw new HostError('conformance.watch', 'the watch of the machine has ended', { cause: this.#failure });
      if (this.#clock.now() > patience) return millis(this.#clock.now() - to);
      await this.#clock.sleep(millis(50), signal);
    }
    const meanwhile = this.#controls.filter(({ at, took }) => at <= to && at + took >= from);
    return millis(Math.max(0, ...meanwhile.map(({ took }) => took)));
  }

  async #follow(): Promise<void> {
    try {
      while (!this.#isOver) {
        const run = this.#start();
        this.#run = run;
        for await (const result of run) this.#add(result);
        await run[Symbol.asyncDispose]();
      }
    } catch (error) {
      this.#failure = error;
    }
  }

  #add({ scheduledAt, doneAt, outcome }: LoadResult): void {
    const took = outcome === 'answered' ? doneAt - scheduledAt : Math.max(timeout, doneAt - scheduledAt);
    this.#controls.push({ at: scheduledAt, took });
    this.#shortage.note(this.#clock.now());
    const [first] = this.#controls;
    if (first === undefined || first.at >= scheduledAt - 2 * kept) return;
    this.#controls = this.#controls.filter(({ at }) => at >= scheduledAt - kept);
    this.#shortage.forget(millis(scheduledAt - kept));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#run?.[Symbol.asyncDispose]();
    await this.#following;
  }
}
