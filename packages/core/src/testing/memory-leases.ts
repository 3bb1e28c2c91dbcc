import { ApiServerError } from '../base/errors.ts';
import type { JsonAnswer, JsonRequest } from '../kubernetes/send-json.ts';

interface StoredObject {
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** An API server that has Leases and nothing else, with the rules for versions of the real one. */
export class MemoryLeases {
  readonly #leases = new Map<string, StoredObject>();
  #version = 0;
  /** Requests so far, as `PUT switchyard-lb by a`. */
  readonly requests: string[] = [];
  /** Failure of a request before it is processed. Default: none. */
  trouble: (request: JsonRequest) => 'none' | 'unreachable' | 'hang' | 'answerLost' | number = () => 'none';

  /** The `spec` of a lease, as it is stored. */
  spec(name: string): Readonly<Record<string, unknown>> | undefined {
    return this.#leases.get(name)?.spec;
  }

  /** As `sendJson`. */
  readonly send = async (request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer> => {
    signal.throwIfAborted();
    const trouble = this.trouble(request);
    if (trouble === 'hang') await new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason)));
    if (trouble === 'unreachable') throw new ApiServerError('api.unreachable', 'no answer', { isRetryable: true });
    if (typeof trouble === 'number') return reply(trouble, { message: 'as the test wants' });
    const answer = this.#answer(request);
    if (trouble === 'answerLost') throw new ApiServerError('api.unreachable', 'no answer', { isRetryable: true });
    return answer;
  };

  #answer({ method, path, body }: JsonRequest): JsonAnswer {
    const sent = body as StoredObject | undefined;
    const name = path.split('/')[7] ?? String(sent?.metadata['name']);
    const holder = sent?.spec['holderIdentity'];
    this.requests.push(`${method} ${name}${holder === undefined ? '' : ` by ${String(holder) || 'nobody'}`}`);
    const current = this.#leases.get(name);
    if (method === 'POST') return current === undefined ? this.#store(name, sent, 201) : reply(409, {});
    if (current === undefined) return reply(404, {});
    if (method === 'GET') return reply(200, current);
    const isStale = sent?.metadata['resourceVersion'] !== current.metadata['resourceVersion'];
    return isStale ? reply(409, {}) : this.#store(name, sent, 200);
  }

  #store(name: string, sent: StoredObject | undefined, status: number): JsonAnswer {
    if (sent === undefined) return reply(400, {});
    const stored = { ...sent, metadata: { ...sent.metadata, resourceVersion: `${++this.#version}` } };
    this.#leases.set(name, stored);
    return reply(status, stored);
  }
}

function reply(status: number, body: object): JsonAnswer {
  return { status, body: JSON.stringify(body), retryAfter: undefined };
}
