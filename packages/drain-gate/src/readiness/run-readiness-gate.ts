import type { ResourceEvent } from '@switchyard/core';
import { PodReadiness, type PodReadinessOptions } from './pod-readiness.ts';
import { Rounds } from './rounds.ts';
import type { WaitingPod } from './waiting-pod.ts';

/** A change of the pods that wait. */
export type WaitingPodEvent = ResourceEvent<'Pod', WaitingPod>;

/** Options of a readiness gate. */
export interface ReadinessGateOptions extends Omit<PodReadinessOptions, 'end'> {
  /** Delivers events of waiting pods until aborted. */
  readonly followPods: (deliver: (event: WaitingPodEvent) => void, signal: AbortSignal) => Promise<void>;
}

/** Keeps the condition of pods until aborted, then rejects with the reason. One process at a time may do it. */
export async function runReadinessGate(options: ReadinessGateOptions, signal: AbortSignal): Promise<void> {
  const broken = new AbortController();
  const end = AbortSignal.any([signal, broken.signal]);
  const gate = new ReadinessGate({ ...options, end }, (error) => broken.abort(error));
  try {
    await options.followPods((event) => gate.take(event), end);
  } finally {
    await gate.stop();
  }
}

interface PodTask {
  readonly uid: string;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

class ReadinessGate {
  readonly #options: PodReadinessOptions;
  readonly #rounds: Rounds;
  readonly #tasks = new Map<string, PodTask>();
  readonly #onDefect: (error: unknown) => void;

  constructor(options: PodReadinessOptions, onDefect: (error: unknown) => void) {
    this.#options = options;
    this.#onDefect = onDefect;
    this.#rounds = new Rounds({ ...options.view, clock: options.clock });
  }

  take(event: WaitingPodEvent): void {
    if (event.kind === 'delete') return this.#end(event.name);
    if (event.kind === 'upsert') return this.#begin(event.item);
    const kept = new Set(event.items.map(({ key }) => key));
    for (const key of this.#tasks.keys()) if (!kept.has(key)) this.#end(key);
    for (const pod of event.items) this.#begin(pod);
  }

  async stop(): Promise<void> {
    const tasks = [...this.#tasks.values()];
    for (const { stop } of tasks) stop.abort();
    await Promise.all(tasks.map(({ ended }) => ended));
  }

  /** A task that has written True stays until the watch delivers that: events from before begin no other. */
  #begin(pod: WaitingPod): void {
    if (this.#tasks.get(pod.key)?.uid === pod.uid) return;
    this.#end(pod.key);
    const stop = new AbortController();
    const ended = new PodReadiness(pod, this.#options, this.#rounds).run(stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) this.#onDefect(error);
    });
    this.#tasks.set(pod.key, { uid: pod.uid, stop, ended });
  }

  #end(key: string): void {
    this.#tasks.get(key)?.stop.abort();
    this.#tasks.delete(key);
  }
}
