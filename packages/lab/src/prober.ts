import { HostError, millis } from '@switchyard/core';
import type { LabHost, LabProcess } from './lab.ts';
import { nodeProgram } from './program-path.ts';
import type { ProbeRequest, ProbeResult } from './probe-types.ts';

/** A long-lived process in a namespace that makes connection attempts, many at once and many a second. */
export interface Prober extends AsyncDisposable {
  /** One attempt. Network failures are results; it rejects only when the prober's process is gone. */
  probe(request: ProbeRequest): Promise<ProbeResult>;
}

/** From the owner to the agent. */
export interface ProbeCall {
  readonly id: number;
  readonly request: ProbeRequest;
}

/** From the agent to the owner. */
export interface ProbeReply {
  readonly id: number;
  readonly result: ProbeResult;
}

/** Starts a prober in `host`'s namespace and waits until it is ready (about 0.1 s). It ends with the lab. */
export async function createProber(host: LabHost, signal: AbortSignal): Promise<Prober> {
  const agent = host.spawn(process.execPath, nodeProgram('probe-agent'), { ipc: true, logName: 'prober' });
  const prober = new AgentProber(host, agent);
  try {
    await prober.ready(signal);
    return prober;
  } catch (error) {
    await prober[Symbol.asyncDispose]();
    throw error;
  }
}

class AgentProber implements Prober {
  readonly #host: LabHost;
  readonly #agent: LabProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<ProbeResult>>();
  readonly #ready = Promise.withResolvers<void>();
  #calls = 0;
  #isGone = false;

  constructor(host: LabHost, agent: LabProcess) {
    this.#host = host;
    this.#agent = agent;
    this.#ready.promise.catch(() => undefined); // told to whoever calls `ready`
    agent.child.on('message', (message) => this.#receive(message as ProbeReply | { readonly id: 'ready' }));
    void agent.ended.then((status) => this.#fail(status));
  }

  async ready(signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#ready.reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#ready.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async probe(request: ProbeRequest): Promise<ProbeResult> {
    if (this.#isGone) throw this.#goneError('earlier');
    this.#calls += 1;
    const id = this.#calls;
    const waiting = Promise.withResolvers<ProbeResult>();
    this.#waiting.set(id, waiting);
    this.#agent.child.send({ id, request } satisfies ProbeCall);
    return waiting.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.stop(millis(0));
  }

  #receive(message: ProbeReply | { readonly id: 'ready' }): void {
    if (message.id === 'ready') return this.#ready.resolve();
    this.#waiting.get(message.id)?.resolve((message as ProbeReply).result);
    this.#waiting.delete(message.id);
  }

  #fail(status: number | string): void {
    this.#isGone = true;
    const error = this.#goneError(status);
    this.#ready.reject(error);
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }

  #goneError(status: number | string): HostError {
    const { logFile } = this.#agent;
    return new HostError('lab.prober', `the prober in ${this.#host.namespace} has ended (${status}); see ${logFile}`);
  }
}
