import { abortable, HostError, millis, UsageError } from '@switchyard/core';
import { freshPort } from './probe.ts';
import type { LabHost, LabProcess } from './lab.ts';
import type {
  AnswerWait,
  AwaitedAnswer,
  ProbeCall,
  ProbeConnection,
  ProbeReply,
  ProbeRequest,
  ProbeResult,
  ProbeSocket,
} from './probe-types.ts';
import { nodeProgram } from './program-path.ts';

/** A long-lived process in a namespace that makes connection attempts, many at once and many a second. */
export interface Prober extends AsyncDisposable {
  /** One attempt. Network failures are results; it rejects only if the prober's process has ended. */
  probe(request: ProbeRequest): Promise<ProbeResult>;
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

type CallBody = ProbeCall extends infer C ? (C extends unknown ? Omit<C, 'id'> : never) : never;

const exchangeTimeout = 1500;

class AgentProber implements Prober {
  readonly #host: LabHost;
  readonly #agent: LabProcess;
  /** Calls without an answer yet. Number 0 is the agent's start. */
  readonly #waiting = new Map<number, PromiseWithResolvers<ProbeReply>>();
  readonly #ready: Promise<ProbeReply>;
  #calls = 0;
  #isGone = false;

  constructor(host: LabHost, agent: LabProcess) {
    this.#host = host;
    this.#agent = agent;
    this.#ready = this.#expect(0);
    this.#ready.catch(() => undefined); // `ready` rejects for its caller
    agent.child.on('message', (message) => {
      const reply = message as ProbeReply;
      this.#waiting.get(reply.id)?.resolve(reply);
      this.#waiting.delete(reply.id);
    });
    void agent.ended.then((status) => this.#fail(status));
  }

  async ready(signal: AbortSignal): Promise<void> {
    await abortable(this.#ready, signal);
  }

  async probe(request: ProbeRequest): Promise<ProbeResult> {
    const fresh = request.protocol === 'udp' ? { sourcePort: freshPort(this.#host) } : {};
    return resultOf(await this.#call({ kind: 'probe', request: { ...fresh, ...request } }).reply);
  }

  async awaitAnswer(request: ProbeRequest, until: AnswerWait): Promise<AwaitedAnswer> {
    const reply = await this.#call({ kind: 'await', request, until }).reply;
    return { result: resultOf(reply), at: reply.kind === 'awaited' ? reply.at : Number.NaN };
  }

  async open(request: ProbeRequest): ReturnType<Prober['open']> {
    if (request.protocol !== 'tcp') throw new UsageError('lab.prober', 'open takes TCP requests only');
    const { id, reply } = this.#call({ kind: 'open', request });
    const result = resultOf(await reply);
    return { result, connection: result.status === 'answered' ? this.#connection(id) : undefined };
  }

  async connectUdp(request: ProbeRequest): Promise<ProbeSocket> {
    if (request.protocol !== 'udp') throw new UsageError('lab.prober', 'connectUdp takes UDP requests only');
    const { id, reply } = this.#call({ kind: 'connect', request });
    await reply;
    return {
      ask: async (timeout = exchangeTimeout) =>
        resultOf(await this.#call({ kind: 'ask', connection: id, timeout }).reply),
      close: async () => {
        await this.#call({ kind: 'close', connection: id }).reply;
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.stop(millis(0));
  }

  #connection(connection: number): ProbeConnection {
    return {
      exchange: async (text, timeout = exchangeTimeout) => {
        const reply = await this.#call({ kind: 'exchange', connection, text, timeout }).reply;
        return reply.kind === 'exchange' ? reply.exchange : { status: 'closed' };
      },
      close: async () => {
        await this.#call({ kind: 'close', connection }).reply;
      },
    };
  }

  #call(body: CallBody): { readonly id: number; readonly reply: Promise<ProbeReply> } {
    if (this.#isGone) throw this.#goneError('earlier');
    this.#calls += 1;
    const id = this.#calls;
    const reply = this.#expect(id);
    this.#agent.child.send({ id, ...body } satisfies ProbeCall);
    return { id, reply };
  }

  #expect(id: number): Promise<ProbeReply> {
    const waiting = Promise.withResolvers<ProbeReply>();
    this.#waiting.set(id, waiting);
    return waiting.promise;
  }

  #fail(status: number | string): void {
    this.#isGone = true;
    const error = this.#goneError(status);
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }

  #goneError(status: number | string): HostError {
    const { logFile } = this.#agent;
    return new HostError('lab.prober', `the prober in ${this.#host.namespace} has ended (${status}); see ${logFile}`);
  }
}

function resultOf(reply: ProbeReply): ProbeResult {
  return reply.kind === 'result' || reply.kind === 'awaited'
    ? reply.result
    : { status: 'unreachable', code: 'EPROTO', took: 0 };
}
