import { type Clock, HostError, messageOf, millis, seconds, type ServiceKey } from '@switchyard/core';
import {
  type CheckingClient,
  maxServices,
  type NodeQuestion,
  type NodeReply,
  type PodUse,
  type ServedPod,
} from './protocol.ts';

/** Asks one node. Rejects with any error if it gives no answer. */
export type AskNode = (question: NodeQuestion, signal: AbortSignal) => Promise<NodeReply>;

/** State of a node for which a drain waits. */
export interface Want {
  readonly version: number;
  readonly pods: readonly ServedPod[];
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Called once when the node has applied it, or was deleted; and with a reason each time it has not. */
  readonly note: (progress: NodeProgress) => void;
}

/** `deleted`: there is no such Node any more. */
export type NodeProgress =
  | { readonly kind: 'applied' }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'waiting'; readonly why: string };

export interface NodeWatchOptions {
  readonly ask: AskNode;
  /** Failing health checks in a row after which a load balancer that does not announce it has left a node. */
  readonly failures: number;
  readonly clock: Pick<Clock, 'sleep'>;
}

/** A node answers when something changes, at the latest after this. */
const longestWait = seconds(10);
/** Time between two looks at health checks. */
const checkInterval = millis(200);
/** Least time between two questions that wait for the next change of any Service. */
const idleGap = millis(50);
const retry = { first: 100, max: 1000 };
/** Made once: thousands of requests may end at a time. */
const anotherDrain = new HostError('drain.asksAnew', 'another drain changes the question');

/** Asks one node on behalf of all drains that wait for it, with one request at a time. */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  readonly #wants = new Set<Want>();
  /** Version that the node has, as far as known. */
  #version = 0;
  /** Whether health checks or the rules of an observed proxy, which change without a version, decide. */
  #dependsOnChecks = false;
  /** Of the request in progress, if it only waits for the next change. */
  #idle: AbortController | undefined;
  #isRunning = false;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
  }

  /** Waits until `want.signal` aborts. */
  add(want: Want): void {
    this.#wants.add(want);
    this.#idle?.abort(anotherDrain);
    if (!this.#isRunning) void this.#run();
  }

  /** Ends all waits: the Node was deleted. */
  close(): void {
    for (const { note, signal } of this.#wants) if (!signal.aborted) note({ kind: 'deleted' });
    this.#wants.clear();
    this.#idle?.abort(anotherDrain);
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#version = 0; // the node may have started anew
    let pause = retry.first;
    for (let wants = this.#nextWants(); wants.length > 0; wants = this.#nextWants()) {
      try {
        const reply = await this.#ask(wants);
        if (reply === undefined) continue; // asked anew, with one more
        this.#version = reply.slicesVersion;
        this.#dependsOnChecks = reply.used.some(({ checkedBy, isLate }) => checkedBy !== undefined || isLate === true);
        for (const want of wants) this.#judge(want, reply);
        pause = retry.first;
      } catch (error) {
        for (const want of wants) want.note({ kind: 'waiting', why: `does not answer: ${messageOf(error)}` });
        await this.#options.clock.sleep(millis(pause), new AbortController().signal);
        pause = Math.min(2 * pause, retry.max);
      }
    }
    this.#isRunning = false;
  }

  /** As many as one question holds, the newest first: those that wait for long may wait for ever. */
  #nextWants(): readonly Want[] {
    for (const want of this.#wants) if (want.signal.aborted) this.#wants.delete(want);
    const services = new Set<ServiceKey>();
    return [...this.#wants].toReversed().filter(({ pods }) => {
      const more = pods.filter(({ service }) => !services.has(service));
      if (services.size + more.length > maxServices) return false;
      for (const { service } of more) services.add(service);
      return true;
    });
  }

  /** Undefined if another drain came while it only waited for the next change. */
  async #ask(wants: readonly Want[]): Promise<NodeReply | undefined> {
    const behind = wants.filter(({ version }) => version > this.#version).map(({ version }) => version);
    const isIdle = behind.length === 0 && this.#version > 0;
    const stop = new AbortController();
    this.#idle = isIdle ? stop : undefined;
    if (isIdle) await this.#options.clock.sleep(idleGap, stop.signal).catch(() => undefined);
    if (stop.signal.aborted) return undefined;
    const question: NodeQuestion = {
      after: isIdle ? this.#version + 1 : behind.length === 0 ? 0 : Math.min(...behind),
      services: [...new Set(wants.flatMap(({ pods }) => pods.map(({ service }) => service)))],
      timeout: isIdle && this.#dependsOnChecks ? checkInterval : longestWait,
    };
    try {
      return await this.#options.ask(question, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) return undefined;
      throw error;
    } finally {
      this.#idle = undefined;
    }
  }

  #judge(want: Want, reply: NodeReply): void {
    if (want.signal.aborted || !this.#wants.has(want)) return;
    const why = this.#obstacle(want, reply);
    if (why === undefined) this.#wants.delete(want);
    want.note(why === undefined ? { kind: 'applied' } : { kind: 'waiting', why });
  }

  #obstacle({ version, pods }: Want, { slicesVersion, failed, used }: NodeReply): string | undefined {
    if (slicesVersion < version) return `has applied version ${slicesVersion}, not yet ${version}`;
    const services = new Set(pods.map(({ service }) => service));
    const failure = failed.find((service) => services.has(service));
    if (failure !== undefined) return `could not apply ${failure}`;
    const isOurs = ({ address, service }: PodUse): boolean =>
      pods.some((pod) => pod.address === address && pod.service === service);
    return used
      .filter(isOurs)
      .map((use) => this.#useText(use))
      .find((text) => text !== undefined);
  }

  /** Undefined if the load balancers have left the node, and no other client gets there. */
  #useText({ service, policies, isLate, checkedBy }: PodUse): string | undefined {
    if (isLate === true)
      return `has not applied it yet: the rules of its kube-proxy for ${service} are those of before`;
    if (policies.includes('Cluster')) return `still chooses it: ${service} has no other endpoint`;
    if (checkedBy === undefined) return `still chooses it: ${service} has policy Local, and no other endpoint there`;
    return checkedBy.map((client) => this.#clientText(client, service)).find((text) => text !== undefined);
  }

  /** Undefined if it has left the node: by its own word, or because it has seen enough failing checks. */
  #clientText({ address, failures, announced }: CheckingClient, service: ServiceKey): string | undefined {
    const { failures: needed } = this.#options;
    const name = `load balancer ${address} of ${service}`;
    if (announced !== undefined) return announced === 'left' ? undefined : `${name} still uses the node`;
    return failures < needed ? `${name} got ${failures} of ${needed} failing health checks` : undefined;
  }
}
