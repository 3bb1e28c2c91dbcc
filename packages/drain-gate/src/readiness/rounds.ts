import { type Clock, millis, type ServiceKey } from '@switchyard/core';
import { type NodeParts, NodesApplied } from '../nodes-applied.ts';
import type { ServedPod } from '../protocol.ts';

/** Pods that come within this time ask the nodes together. */
const gatherTime = millis(50);
/** More Services get another round: a question has room for 100. */
const maxRoundServices = 50;

interface Round {
  readonly served: ServedPod[];
  readonly stop: AbortController;
  readonly nodes: Promise<NodesApplied>;
  members: number;
}

/** Asks all nodes whether they have applied the EndpointSlices as they are now, once for many pods. */
export class Rounds {
  readonly #parts: NodeParts;
  #open: Round | undefined;

  constructor(parts: NodeParts & { readonly clock: Clock }) {
    this.#parts = parts;
  }

  /** Joins the next round, which ends when the signals of all its pods have aborted. */
  async join(served: readonly ServedPod[], signal: AbortSignal): Promise<NodesApplied> {
    const services = new Set<ServiceKey>([...(this.#open?.served ?? []), ...served].map(({ service }) => service));
    const round = this.#open === undefined || services.size > maxRoundServices ? this.#begin() : this.#open;
    round.served.push(...served);
    round.members++;
    const leave = (): void => {
      if (--round.members === 0) round.stop.abort();
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return round.nodes;
  }

  #begin(): Round {
    const served: ServedPod[] = [];
    const stop = new AbortController();
    const begin = async (): Promise<NodesApplied> => {
      const { clock, state } = this.#parts;
      await clock.sleep(gatherTime, new AbortController().signal);
      if (this.#open === round) this.#open = undefined;
      return new NodesApplied({ version: state.version, pods: served }, this.#parts, stop.signal);
    };
    const round: Round = { served, stop, nodes: begin(), members: 0 };
    this.#open = round;
    return round;
  }
}
