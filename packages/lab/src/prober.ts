import { abortable, HostError, millis, UsageError } from '@switchyard/core';
import { freshPort } from './probe.ts';
import type { LabHost, LabProcess } from './lab.ts';
import type {
  AnswerWait,
  AwaitedAnswer,
  ProbeCall,
  ProbeConnection,
  ProbeReply,
  ProberCalls,
  ProbeRequest,
  ProbeResult,
  ProbeSocket,
} from './probe-types.ts';
import { nodeProgram } from './program-path.ts';
import type { SctpRequest } from './sctp-sender.ts';

/** A long-lived process in a namespace that makes connection attempts, many at once and many a second. */
export interface Prober extends AsyncDisposable {
  /** One attempt. Network failures are results; it rejects only if the prober's process has ended. */
  probe(request: ProbeRequest): Promise<ProbeResult>;
  /** SCTP attempts side by side; the results have no order. An ICMP error is the result of all attempts that wait. */
  sctp(request: SctpRequest): Promise<readonly ProbeResult[]>;
  /**
   * Repeats attempts until a certain pod answers or the timeout passes. The prober's process takes the times, so that they
   * include no message between processes. For tcp, http and udp.
   */
  awaitAnswer(request: ProbeRequest, until: AnswerWait): Promise<AwaitedAnswer>;
  /** Opens a TCP connection to an echo server and keeps it; `connection` is undefined unless it answered. */
  open(
    request: ProbeRequest,
  ): Promise<{ readonly result: ProbeResult; readonly connection: ProbeConnection | undefined }>;
  /** Connects a UDP socket, which sends nothing yet, and keeps it. */
  connectUdp(request: ProbeRequest): Promise<ProbeSocket>;
}

const exchangeTimeout = 1500;

/** Starts a prober in `host`'s namespace and waits until it is ready (about 0.1 s). It ends with the lab. */
export async function createProber(host: LabHost, signal: AbortSignal): Promise<Prober> {
  const agent = host.spawn(process.execPath, nodeProgram('probe-agent'), { ipc: true, logName: 'prober' });
  const prober = new AgentProber(host, agent);
  try {
    await abortable(prober.ready, signal);
    return prober;
  } catch (error) {
    await prober[Symbol.asyncDispose]();
    throw error;
  }
}

class AgentProber implements Prober {
  /** Resolves when the agent takes calls. */
  readonly ready: Promise<unknown>;
  readonly #host: LabHost;
  readonly #agent: LabProcess;
  /** Calls without an answer yet. Number 0 is the agent's start. */
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;
  #isGone = false;

  constructor(host: LabHost, agent: LabProcess) {
    this.#host = host;
    this.#agent = agent;
    this.ready = this.#expect(0);
    this.ready.catch(() => undefined); // it rejects for those who wait for it
    agent.child.on('message', (message) => {
      const { id, result } = message as ProbeReply;
      this.#waiting.get(id)?.resolve(result);
      this.#waiting.delete(id);
    });
    void agent.ended.then((status) => {
      this.#isGone = true;
      for (const { reject } of this.#waiting.values()) reject(this.#goneError(status));
      this.#waiting.clear();
    });
  }

  async probe(request: ProbeRequest): Promise<ProbeResult> {
    const fresh = request.protocol === 'udp' ? { sourcePort: freshPort(this.#host) } : {};
    return this.#call('probe', { ...fresh, ...request });
  }

  sctp(request: SctpRequest): Promise<readonly ProbeResult[]> {
    return this.#call('sctp', request);
  }

  async awaitAnswer(request: ProbeRequest, until: AnswerWait): Promise<AwaitedAnswer> {
    return this.#call('await', { probe: request, until });
  }

  async open(request: ProbeRequest): ReturnType<Prober['open']> {
    if (request.protocol !== 'tcp') throw new UsageError('lab.prober', 'open takes TCP requests only');
    const { result, connection } = await this.#call('open', request);
    if (connection === undefined) return { result, connection };
    const kept: ProbeConnection = {
      exchange: (text, timeout = exchangeTimeout) => this.#call('exchange', { connection, text, timeout }),
      close: async () => void (await this.#call('close', { connection })),
    };
    return { result, connection: kept };
  }

  async connectUdp(request: ProbeRequest): Promise<ProbeSocket> {
    if (request.protocol !== 'udp') throw new UsageError('lab.prober', 'connectUdp takes UDP requests only');
    const { connection } = await this.#call('connect', request);
    return {
      ask: (timeout = exchangeTimeout) => this.#call('ask', { connection, timeout }),
      close: async () => void (await this.#call('close', { connection })),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.stop(millis(0));
  }

  async #call<Name extends keyof ProberCalls>(
    name: Name,
    argument: ProberCalls[Name]['argument'],
  ): Promise<ProberCalls[Name]['result']> {
    if (this.#isGone) throw this.#goneError('earlier');
    const id = ++this.#calls;
    const reply = this.#expect(id);
    this.#agent.child.send({ id, name, argument } satisfies ProbeCall);
    return reply as Promise<ProberCalls[Name]['result']>; // the agent is of the same version
  }

  #expect(id: number): Promise<unknown> {
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    return waiting.promise;
  }

  #goneError(status: number | string): HostError {
    const { logFile } = this.#agent;
    return new HostError('lab.prober', `the prober in ${this.#host.namespace} has ended (${status}); see ${logFile}`);
  }
}
