import { type Clock, messageOf, millis, type Millis } from '@switchyard/core';
import type { Agent } from '../access/agents.ts';
import { askLines } from '../access/ask.ts';
import { NodeClock } from './node-clock.ts';
import { conditionOf } from './object-trackers.ts';
import type { EndpointCondition, NodeChange, PacketLoss, WatchedNode } from './recording.ts';

/** A line of `/debug/changes`. */
export interface ChangesLine {
  readonly time: string;
  readonly service?: string;
  readonly ipFamily?: string;
  readonly isObserver?: boolean;
  readonly before?: boolean;
  readonly endpoints?: readonly { readonly address: string; readonly ready: boolean; readonly terminating: boolean }[];
}

/** A line of `/debug/losses`. */
interface LossesLine {
  readonly time: string;
  readonly packets?: { readonly watched: boolean; readonly why?: string };
  readonly cause?: string;
  readonly why?: string;
  readonly certainty?: string;
  readonly service?: string;
  readonly services?: readonly string[];
  readonly count?: number;
}

type NodeTimed<T> = Omit<T, 'at'> & { readonly time: Millis };

/** Changes and losses of one node. Its times are moved when they are read, with all that is known of its clock then. */
export class NodeWatch {
  readonly node: string;
  readonly clock: NodeClock = new NodeClock();
  readonly #conditions = new Map<string, Map<string, EndpointCondition>>();
  readonly #applies: NodeTimed<NodeChange>[] = [];
  readonly #packets: NodeTimed<PacketLoss>[] = [];
  #isObserver = false;
  #blindness: string | undefined = 'its stream did not begin';

  constructor(node: string) {
    this.node = node;
  }

  /** Notes a line of `/debug/changes`. The first line of a Service port is its state before. */
  noteChanges({ time, service, ipFamily = '', before, endpoints, isObserver }: ChangesLine): void {
    if (isObserver !== undefined) this.#isObserver = isObserver;
    if (service === undefined || endpoints === undefined) return;
    const key = `${service} ${ipFamily}`;
    const former = this.#conditions.get(key) ?? new Map<string, EndpointCondition>();
    const now = new Map(endpoints.map((endpoint) => [endpoint.address, conditionOf(endpoint)] as const));
    this.#conditions.set(key, now);
    if (before === true) return;
    const add = (address: string, condition: EndpointCondition): void =>
      void this.#applies.push({ time: millis(Date.parse(time)), node: this.node, service: key, address, condition });
    for (const [address, condition] of now) if (former.get(address) !== condition) add(address, condition);
    for (const address of former.keys()) if (!now.has(address)) add(address, 'removed');
  }

  /** Notes a line of `/debug/losses` if it is of one of these Services, `NAMESPACE/NAME`. */
  noteLosses(line: LossesLine, services: readonly string[]): void {
    if (line.packets !== undefined) this.#blindness = line.packets.watched ? undefined : line.packets.why;
    const { cause, why = '', certainty = '', count = 0 } = line;
    const keys = line.services ?? (line.service === undefined ? [] : [line.service]);
    const service = keys.find((key) => services.some((name) => key.startsWith(`${name}:`)));
    if (cause === undefined || service === undefined) return;
    this.#packets.push({ time: millis(Date.parse(line.time)), node: this.node, service, cause, why, certainty, count });
  }

  fail(error: unknown): void {
    this.#blindness = messageOf(error);
  }

  get applies(): readonly NodeChange[] {
    return this.#applies.map((one) => this.#moved(one));
  }

  get packets(): readonly PacketLoss[] {
    return this.#packets.map((one) => this.#moved(one));
  }

  get state(): WatchedNode {
    const { accuracy } = this.clock;
    return { node: this.node, isObserver: this.#isObserver, accuracy, blindness: this.#blindness };
  }

  #moved<T extends { readonly time: Millis }>({ time, ...rest }: T): Omit<T, 'time'> & { readonly at: Millis } {
    return { ...rest, at: this.clock.toHere(time) };
  }
}

/** Watched Services and surroundings of the agents' streams. */
export interface FollowOptions {
  /** `NAMESPACE/NAME`. */
  readonly services: readonly string[];
  /** Longest time to watch, in whole seconds. */
  readonly limit: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly warn: (text: string) => void;
  /** Called when a stream has begun or failed. */
  readonly onBegin: () => void;
}

/** Number of streams of each agent. */
export function streamsOf({ services }: Pick<FollowOptions, 'services'>): number {
  return services.length + 1;
}

/** Follows an agent's streams until `signal` aborts. A stream that fails is reported; never rejects. */
export async function followAgent(
  agent: Agent,
  watch: NodeWatch,
  options: FollowOptions,
  signal: AbortSignal,
): Promise<void> {
  const { services, limit } = options;
  const [namespace = ''] = services[0]?.split('/') ?? [];
  const follow = async (path: string, onLine: (line: ChangesLine & LossesLine) => void): Promise<void> => {
    let begin: (() => void) | undefined = options.onBegin;
    try {
      let sent: Millis | undefined = options.clock.now();
      for await (const line of askLines<ChangesLine & LossesLine>(agent, path, signal)) {
        // Lines of the state before have the time of the request.
        watch.clock.note(millis(Date.parse(line.time)), { sent, arrived: options.clock.now() });
        sent = undefined;
        onLine(line);
        begin?.();
        begin = undefined;
      }
    } catch (error) {
      if (!signal.aborted) {
        watch.fail(error);
        options.warn(messageOf(error));
      }
    } finally {
      begin?.();
    }
  };
  await Promise.all([
    ...services.map((service) =>
      follow(`/debug/changes?seconds=${limit}&service=${encodeURIComponent(service)}`, (line) =>
        watch.noteChanges(line),
      ),
    ),
    follow(`/debug/losses?format=json&seconds=${limit}&namespace=${encodeURIComponent(namespace)}`, (line) =>
      watch.noteLosses(line, services),
    ),
  ]);
}
