import type { ForwardingTable, ServiceForwarding } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { clusterOf, movedAddress, movedTo, withoutLast } from './cluster.ts';
import type { Dataplane } from './dataplane.ts';
import { openOurs } from './our-dataplane.ts';
import { processCpu } from './process-cpu.ts';
import type { Restore } from './recording-runner.ts';
import { answer, type Place, type Pod, setStage } from './stage.ts';
import { openTheirs } from './their-dataplane.ts';

/** Measurements of one dataplane. Times in milliseconds, medians. */
export interface Figures {
  /** Until the last Service answers; undefined: not within `patience`. */
  readonly load: number | undefined;
  /** CPU of that, with the programs that were run. */
  readonly loadCpu: number;
  /** One of ten endpoints comes or goes: what is handed to iptables-restore, and how long that takes. */
  readonly bytes: number;
  readonly lines: number;
  readonly restore: number;
  /** The same with what goes on around it. */
  readonly change: number;
  /** CPU of that, with the programs that were run; the mean. */
  readonly changeCpu: number;
  /** The only endpoint of a Service is replaced: until the new one answers. */
  readonly visible: number;
}

/** One variant at one size; undefined: kube-proxy's content was not loaded, so there is nothing to change. */
export interface Comparison {
  readonly variant: IptablesVariant;
  readonly services: number;
  readonly ours: Figures;
  readonly theirs: Figures | undefined;
  /** A process with no memory finds everything right. */
  readonly adoption: number;
}

/** How much is measured. */
export interface Effort {
  /** Changes of each kind. */
  readonly rounds: number;
  readonly signal: AbortSignal;
}

/** Compares at one size. The two take turns, so that both meet the same noise. */
export async function compare(variant: IptablesVariant, services: number, effort: Effort): Promise<Comparison> {
  const { signal } = effort;
  await using stage = await setStage(signal);
  await using ours = new Side(stage.ours, await openOurs(stage.ours, variant, signal), services);
  await using theirs = new Side(stage.theirs, await openTheirs(stage.theirs, variant, signal), services);
  await theirs.load();
  await ours.load();
  for (let round = 0; round < effort.rounds; round++) {
    await theirs.change(round);
    await ours.change(round);
  }
  const adoption = await adopt(stage.ours, variant, ours.table, signal);
  return { variant, services, ours: ours.figures(), theirs: theirs.isLoaded ? theirs.figures() : undefined, adoption };
}

async function adopt(
  place: Place,
  variant: IptablesVariant,
  table: ForwardingTable,
  signal: AbortSignal,
): Promise<number> {
  await using restarted = await openOurs(place, variant, signal);
  return (await restarted.load(table)) ?? Number.NaN;
}

/** One of the two, with what was measured of it so far. */
class Side implements AsyncDisposable {
  readonly #place: Place;
  readonly #dataplane: Dataplane;
  readonly table: ForwardingTable;
  readonly #services: readonly ServiceForwarding[];
  #load: number | undefined;
  #loadCpu = 0;
  #changeCpu = 0;
  #pod: Pod = 'a';
  readonly #restores: Restore[] = [];
  readonly #changes: number[] = [];
  readonly #visible: number[] = [];

  constructor(place: Place, dataplane: Dataplane, services: number) {
    this.#place = place;
    this.#dataplane = dataplane;
    this.table = clusterOf(services, place.pods.a);
    this.#services = [...this.table.services.values()];
  }

  get isLoaded(): boolean {
    return this.#load !== undefined;
  }

  async load(): Promise<void> {
    const start = monotonic();
    const cpu = processCpu();
    if ((await this.#dataplane.load(this.table)) === undefined) return;
    this.#loadCpu = processCpu() - cpu;
    this.#load = (await answer(this.#place.prober, 'a', moved)) - start;
    this.#dataplane.taken();
  }

  /** One endpoint less of some Service, then one more, then the move of the last Service. */
  async change(round: number): Promise<void> {
    if (!this.isLoaded) return;
    const whole = this.#services[(round * 7919) % (this.#services.length - 1)];
    if (whole === undefined) throw new Error('there is no Service');
    const cpu = processCpu();
    for (const next of [withoutLast(whole), whole]) {
      const start = monotonic();
      await this.#dataplane.change(next);
      this.#changes.push(monotonic() - start);
    }
    this.#changeCpu += processCpu() - cpu;
    this.#restores.push(...this.#dataplane.taken());
    this.#pod = this.#pod === 'a' ? 'b' : 'a';
    const start = monotonic();
    const [at] = await Promise.all([
      answer(this.#place.prober, this.#pod, moved),
      this.#dataplane.change(movedTo(this.table, this.#place.pods[this.#pod])),
    ]);
    this.#visible.push(at - start);
    this.#dataplane.taken();
  }

  figures(): Figures {
    return {
      load: this.#load,
      loadCpu: this.#loadCpu,
      bytes: median(this.#restores.map(({ bytes }) => bytes)),
      lines: median(this.#restores.map(({ lines }) => lines)),
      restore: median(this.#restores.map(({ took }) => took)),
      change: median(this.#changes),
      changeCpu: this.#changeCpu / this.#changes.length,
      visible: median(this.#visible),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dataplane[Symbol.asyncDispose]();
  }
}

const moved = { address: movedAddress, port: 80 };

/** CLOCK_MONOTONIC in milliseconds, which all processes of the machine share. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
