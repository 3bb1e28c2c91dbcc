import { describe, expect, test } from 'vitest';
import { ApiServerError } from '../../base/errors.ts';
import type { RecordedEvent } from '../../base/log.ts';
import { ManualClock, settle } from '../../testing/manual-clock.ts';
import { MemoryLogger } from '../../testing/memory-logger.ts';
import type { JsonAnswer, JsonRequest } from '../send-json.ts';
import { ApiEventRecorder } from './api-events.ts';
import { agentEventPolicy, controllerEventPolicy } from './event-policy.ts';

const starting: RecordedEvent = {
  type: 'Normal',
  reason: 'Starting',
  action: 'StartKubeProxy',
  regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
  note: '',
};
const onService = (name: string): RecordedEvent => ({
  type: 'Warning',
  reason: 'FailedToApply',
  action: 'Apply',
  regarding: { kind: 'Service', namespace: 'shop', name, uid: '' },
  note: 'no memory',
});

type Reply = number | 'unreachable' | 'hang' | { readonly status: number; readonly retryAfter: number };

/** A recorder over an API server that answers as told; 201 when told nothing. */
class EventsBench implements AsyncDisposable {
  readonly clock = new ManualClock(Date.parse('2026-11-21T10:00:00Z'));
  readonly logger = new MemoryLogger();
  readonly requests: JsonRequest[] = [];
  replies: Reply[] = [];
  readonly recorder: ApiEventRecorder;

  constructor(policy = agentEventPolicy) {
    this.recorder = new ApiEventRecorder({
      send: (request, signal) => this.#answer(request, signal),
      reporter: { controller: 'kube-proxy', instance: 'kube-proxy-n1' },
      clock: this.clock,
      logger: this.logger,
      policy,
    });
  }

  /** Method, last part of the path, and how often it came, of all writes. */
  get writes(): readonly string[] {
    return this.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, body }) => {
        const { series } = body as { readonly series?: { readonly count: number } };
        return `${method} ${path.split('/')[5]} x${series?.count ?? 1}`;
      });
  }

  async record(...events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) this.recorder.record(event);
    await settle();
  }

  async #answer(request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer> {
    this.requests.push(request);
    if (request.method === 'GET') return answer(200, JSON.stringify({ items: [{ metadata: { uid: 'uid-of-it' } }] }));
    const reply = this.replies.shift() ?? 201;
    if (reply === 'unreachable') throw new ApiServerError('api.unreachable', 'no answer', { isRetryable: true });
    if (reply === 'hang')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    if (typeof reply === 'object') return { ...answer(reply.status, ''), retryAfter: reply.retryAfter as never };
    return answer(reply as number, '{"message":"why"}');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const disposed = this.recorder[Symbol.asyncDispose]();
    await this.clock.advance(1000);
    await disposed;
  }
}

function answer(status: number, body: string): JsonAnswer {
  return { status, body, retryAfter: undefined };
}

describe('an event', () => {
  test('is posted to its namespace; a Service’s uid is looked up by a list', async () => {
    await using bench = new EventsBench();
    await bench.record(starting, onService('cart'));
    expect(bench.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /apis/events.k8s.io/v1/namespaces/default/events',
      'GET /api/v1/namespaces/shop/services?fieldSelector=metadata.name%3Dcart&limit=1',
      'POST /apis/events.k8s.io/v1/namespaces/shop/events',
    ]);
    expect(bench.requests.at(-1)?.body).toMatchObject({ regarding: { name: 'cart', uid: 'uid-of-it' } });
    expect(bench.logger.transitions).toEqual([]);
  });

  test('that repeats is one series: the first repetition is sent at once, later ones once a minute', async () => {
    await using bench = new EventsBench();
    await bench.record(starting);
    await bench.record(starting);
    await bench.record(starting, starting);
    expect(bench.writes).toEqual(['POST default x1', 'PATCH default x2']);
    await bench.clock.advance(59_999);
    expect(bench.writes).toHaveLength(2);
    await bench.clock.advance(1);
    expect(bench.writes.at(-1)).toBe('PATCH default x4');
    await bench.clock.advance(3_600_000);
    expect(bench.writes).toHaveLength(3);
  });

  test('that comes again after six quiet minutes is a new one', async () => {
    await using bench = new EventsBench();
    await bench.record(starting);
    await bench.clock.advance(359_999);
    await bench.record(starting);
    await bench.clock.advance(360_000);
    await bench.record(starting);
    expect(bench.writes).toEqual(['POST default x1', 'PATCH default x2', 'POST default x1']);
  });

  test('whose object the server has forgotten is posted again under a new name, with its count', async () => {
    await using bench = new EventsBench();
    bench.replies = [201, 404];
    await bench.record(starting);
    await bench.record(starting);
    expect(bench.writes).toEqual(['POST default x1', 'PATCH default x2', 'POST default x2']);
    const names = bench.requests.flatMap(({ body }) => (body as { metadata?: { name: string } }).metadata?.name ?? []);
    expect(new Set(names).size).toBe(2);
  });
});

describe('an API server', () => {
  test.each<[string, Reply]>([
    ['cannot be reached', 'unreachable'],
    ['is overloaded', 429],
    ['fails', 500],
    ['wants other credentials', 401],
  ])(
    'that %s gets requests again, at growing intervals, and receives everything that happened in between',
    async (_, reply) => {
      await using bench = new EventsBench();
      bench.replies = [reply, reply, reply];
      await bench.record(starting);
      await bench.clock.advance(999);
      expect(bench.writes).toHaveLength(1);
      await bench.record(starting);
      await bench.clock.advance(1);
      await bench.clock.advance(2000);
      expect(bench.writes).toHaveLength(3);
      await bench.clock.advance(4000);
      expect(bench.writes.at(-1)).toBe('POST default x2');
      await bench.clock.advance(3_600_000);
      expect(bench.writes).toHaveLength(4);
      expect(bench.logger.transitions).toEqual([]);
    },
  );

  test('that says when to come back is believed', async () => {
    await using bench = new EventsBench();
    bench.replies = [{ status: 429, retryAfter: 7000 }];
    await bench.record(starting);
    await bench.clock.advance(6999);
    expect(bench.writes).toHaveLength(1);
    await bench.clock.advance(1);
    expect(bench.writes).toHaveLength(2);
  });

  test('that stays away is given up after ten attempts, with a line', async () => {
    await using bench = new EventsBench();
    bench.replies = Array.from({ length: 20 }, () => 'unreachable' as const);
    await bench.record(starting);
    await bench.clock.advance(3_600_000);
    expect(bench.writes).toHaveLength(10);
    expect(bench.logger.transitions).toEqual(['info an event was not delivered']);
  });

  test.each([
    ['has no such namespace', 404],
    ['finds the event wrong', 422],
  ])('that %s is not asked again', async (_, status) => {
    await using bench = new EventsBench();
    bench.replies = [status];
    await bench.record(starting);
    await bench.clock.advance(3_600_000);
    expect(bench.writes).toHaveLength(1);
    expect(bench.logger.transitions).toEqual(['info an event was not delivered']);
  });

  test('that has the event already, because the first answer got lost, is content', async () => {
    await using bench = new EventsBench();
    bench.replies = ['unreachable', 409];
    await bench.record(starting);
    await bench.clock.advance(3_600_000);
    expect(bench.writes).toHaveLength(2);
  });

  test('that refuses events is complained of once, and asked again after ten minutes', async () => {
    await using bench = new EventsBench();
    bench.replies = [403, 403];
    await bench.record(starting, onService('cart'));
    await bench.clock.advance(599_999);
    expect(bench.writes).toHaveLength(1);
    await bench.clock.advance(1);
    expect(bench.writes).toHaveLength(2);
    await bench.clock.advance(600_000);
    expect(bench.writes).toEqual(['POST default x1', 'POST default x1', 'POST default x1', 'POST shop x1']);
    expect(bench.logger.transitions).toEqual(
      ['warn events are refused', 'info events are accepted again'].map((text, index) =>
        index === 0 ? `${text}; grant "create" and "patch" on events of events.k8s.io to this account` : text,
      ),
    );
  });

  test('that hangs delays no caller', async () => {
    await using bench = new EventsBench();
    bench.replies = ['hang'];
    await bench.record(starting);
    await bench.record(onService('cart'), starting);
    expect(bench.writes).toHaveLength(1);
  });
});

describe('too much', () => {
  test('25 different ones are sent at once, then one in ten seconds; a line says so once', async () => {
    await using bench = new EventsBench();
    await bench.record(...Array.from({ length: 40 }, (_, index) => onService(`s${index}`)));
    expect(bench.writes).toHaveLength(25);
    await bench.clock.advance(10_000);
    await bench.record(onService('s90'), onService('s91'));
    expect(bench.writes).toHaveLength(26);
    expect(bench.logger.transitions).toEqual(
      Array.from({ length: 2 }, () => 'warn too many different events; some are not sent to the API server'),
    );
  });

  test('no more than 200 wait for an API server that is away', async () => {
    await using bench = new EventsBench();
    bench.replies = ['hang'];
    for (let index = 0; index < 220; index++) {
      await bench.record(onService(`s${index}`));
      await bench.clock.advance(10_000);
    }
    expect(bench.logger.transitions).toHaveLength(1);
  });
});

describe('a controller', () => {
  test('sends events about many objects at once, and about a change of one of them', async () => {
    await using bench = new EventsBench(controllerEventPolicy);
    await bench.record(...Array.from({ length: 60 }, (_, index) => onService(`s${index}`)));
    await bench.record({ ...onService('s0'), note: 'no memory at all' }, onService('s1'));
    expect(bench.writes.filter((one) => one.startsWith('POST'))).toHaveLength(61);
    expect(bench.writes).toContain('PATCH shop x2');
  });

  test('sends 25 different events about one object, then one in five minutes', async () => {
    await using bench = new EventsBench(controllerEventPolicy);
    const again = (index: number): RecordedEvent => ({ ...onService('s'), note: `${index}` });
    await bench.record(...Array.from({ length: 40 }, (_, index) => again(index)), onService('other'));
    expect(bench.writes).toHaveLength(26);
    await bench.clock.advance(300_000);
    await bench.record(again(90), again(91));
    expect(bench.writes).toHaveLength(27);
  });
});

describe('the end', () => {
  test('what waits is sent before', async () => {
    const bench = new EventsBench();
    bench.recorder.record(starting);
    await bench[Symbol.asyncDispose]();
    expect(bench.writes).toEqual(['POST default x1']);
    expect(bench.clock.sleeping).toBe(0);
  });

  test('an API server that hangs delays it by a second at most', async () => {
    const bench = new EventsBench();
    bench.replies = ['hang'];
    await bench.record(starting);
    await bench[Symbol.asyncDispose]();
    expect(bench.writes).toEqual(['POST default x1']);
    expect(bench.clock.sleeping).toBe(0);
  });
});
