import {
  abortable,
  type Clock,
  type EventRecorder,
  type Logger,
  messageOf,
  millis,
  newBackOff,
  type Random,
  seconds,
  sleepUntil,
} from '@switchyard/core';
import { type SendJson, statusMessage } from '@switchyard/core/kubernetes';
import type { WaitingNode } from '../nodes-applied.ts';
import type { ServedPod } from '../protocol.ts';
import type { GateView } from '../run-drain-gate.ts';
import type { Rounds } from './rounds.ts';
import { conditionRequest, type NodesFollow, type WaitingPod } from './waiting-pod.ts';

/** Surroundings of a pod that waits. */
export interface PodReadinessOptions {
  readonly view: GateView;
  readonly send: SendJson;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Ends requests. */
  readonly end: AbortSignal;
}

/** The EndpointSlice controller may be this much later than the kubelet. A pod without a Service waits as long. */
const sliceTime = seconds(3);
/** Nodes that follow have applied a change within this time, also in a cluster of 5,000. */
const usualTime = seconds(3);
/** Least time between two messages of a pod. */
const messageInterval = seconds(10);
/** Nodes in one message; more are counted. */
const maxNodes = 3;
const retry = { first: millis(500), max: seconds(30) };

/** Keeps the condition of one pod until it is True. */
export class PodReadiness {
  readonly #options: PodReadinessOptions;
  readonly #rounds: Rounds;
  #pod: WaitingPod;

  constructor(pod: WaitingPod, options: PodReadinessOptions, rounds: Rounds) {
    this.#pod = pod;
    this.#options = options;
    this.#rounds = rounds;
  }

  /**
   * Ends with the condition True. Rejects with the reason of the signal, which ends all waits; only `end` ends a request, because the watch
   * may deliver a write before its answer comes.
   */
  async run(signal: AbortSignal): Promise<void> {
    const served = await this.#served(signal);
    const verdict =
      served.length === 0
        ? ({ status: 'True', reason: 'NoService', message: 'no EndpointSlice of a Service lists the pod' } as const)
        : await this.#untilApplied(served, signal);
    await this.#write(verdict, signal);
  }

  /** The Services whose EndpointSlices list the pod. */
  async #served(signal: AbortSignal): Promise<readonly ServedPod[]> {
    const { view, clock } = this.#options;
    while (!view.state.isInSync) await abortable(view.changed(), signal);
    const end = clock.monotonic() + sliceTime;
    for (;;) {
      const change = view.changed();
      const { served } = view.state.endpointsOf(this.#pod.addresses);
      const rest = end - clock.monotonic();
      if (served.length > 0 || rest <= 0) return served;
      await sleepUntil(change, { clock, duration: millis(rest) }, signal);
    }
  }

  async #untilApplied(served: readonly ServedPod[], signal: AbortSignal): Promise<NodesFollow> {
    const { clock } = this.#options;
    const nodes = await abortable(this.#rounds.join(served, signal), signal);
    for (let duration = usualTime; ; duration = messageInterval) {
      await sleepUntil(nodes.all, { clock, duration }, signal);
      if (nodes.waiting.length === 0) break;
      await this.#write({ status: 'False', reason: 'NodesBehind', message: behindText(nodes.waiting) }, signal);
    }
    return { status: 'True', reason: 'NodesFollow', message: `${nodes.total} nodes have applied its EndpointSlices` };
  }

  /** Writes the condition if it differs, again after failures: when the pod has gone, the watch ends this. */
  async #write(condition: NodesFollow, signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#options;
    const { status, message } = condition;
    if (this.#pod.condition?.status === status && this.#pod.condition.message === message) return;
    const backOff = newBackOff(retry, random);
    for (let isFirst = true; ; isFirst = false) {
      const refusal = await this.#tryWrite(condition);
      if (refusal === undefined) break;
      const fields = { pod: this.#pod.key, reason: refusal };
      if (isFirst) logger.warn('cannot write the condition of a pod; will be tried again', fields);
      await clock.sleep(backOff.next(), signal);
    }
    this.#note(condition);
  }

  /** Returns the reason of a failure. */
  async #tryWrite(condition: NodesFollow): Promise<string | undefined> {
    const { send, clock, end } = this.#options;
    const request = conditionRequest(this.#pod, condition, new Date(clock.now()));
    try {
      const { status, body } = await send(request, end);
      if (status < 300) return undefined;
      const advice = status === 403 ? '; grant "patch" on pods/status to this account' : '';
      return `PATCH ${request.path} answered ${status}: ${statusMessage(body)}${advice}`;
    } catch (error) {
      end.throwIfAborted();
      return messageOf(error);
    }
  }

  #note(condition: NodesFollow): void {
    const { events, logger } = this.#options;
    const { namespace, name, uid, key } = this.#pod;
    const { status, reason, message } = condition;
    const wasBehind = this.#pod.condition?.status === 'False';
    this.#pod = { ...this.#pod, condition };
    logger.info(status === 'True' ? 'a pod may become ready' : 'a pod waits for nodes', { pod: key, reason: message });
    if (status === 'True' && !wasBehind) return;
    const regarding = { kind: 'Pod', namespace, name, uid };
    const type = status === 'True' ? 'Normal' : 'Warning';
    events.record({ type, reason, action: 'WaitForNodes', regarding, note: message });
  }
}

function behindText(waiting: readonly WaitingNode[]): string {
  const texts = waiting.slice(0, maxNodes).map(({ node, why }) => `node ${node} ${why}`);
  const more = waiting.length > maxNodes ? [`and ${waiting.length - maxNodes} more`] : [];
  return [...texts, ...more].join('; ');
}
