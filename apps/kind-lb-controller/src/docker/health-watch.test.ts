import { ManualClock, MemoryLogger, settle } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { TargetChange } from '../runtime/runtime.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { FakeEngine } from '../testing/fake-engine.ts';
import { DockerCli } from './docker-cli.ts';
import { HealthWatch } from './health-watch.ts';
import { parseStampedLine } from './log-line.ts';

const reason = 'Layer7 wrong status, code: 503';
const line = (second: number, backend: string, state = 'DOWN'): string =>
  `2026-11-21T23:31:0${second}.500000000Z Server ${backend}/node1 is ${state}, reason: ${reason}, check duration: 1ms. 1 active and 0 backup servers left.\n`;

interface Fixture extends AsyncDisposable {
  readonly watch: HealthWatch;
  readonly engine: FakeEngine;
  readonly clock: ManualClock;
  readonly log: MemoryLogger;
  readonly changes: TargetChange[];
  /** Answer of each call, and the number of calls. */
  readonly answers: (string | undefined)[];
  count: number;
}

interface FixtureOptions {
  readonly followsTargets?: boolean;
  /** Streams that end before the log continues with the first parameter. */
  readonly streams?: readonly string[];
}

function fixture(stdout: string, { followsTargets = false, streams = [] }: FixtureOptions = {}): Fixture {
  const ended = streams.map((one) => ({ when: 'logs *', stdout: one, times: 1 }));
  const engine = new FakeEngine([...ended, { when: 'logs *', stdout, lasts: 60 }]);
  const [clock, log, changes] = [new ManualClock(), new MemoryLogger(), [] as TargetChange[]];
  const listener = {
    onDisturbed: () => undefined,
    onTargetChange: (change: TargetChange) => void changes.push(change),
  };
  const site: Omit<Fixture, 'watch'> = {
    engine,
    clock,
    log,
    changes,
    answers: [],
    count: 0,
    async [Symbol.asyncDispose]() {
      await watch[Symbol.asyncDispose]();
      engine[Symbol.dispose]();
    },
  };
  const followHealth = (): Promise<string | undefined> => {
    site.count += 1;
    return Promise.resolve(site.answers.shift());
  };
  const cli = new DockerCli({ program: engine.program });
  const watch = new HealthWatch({ cli, clock, log, listener, followsTargets, followHealth });
  return Object.assign(site, { watch });
}

const tcp = exampleSpec('web');
const udp: LoadBalancerSpec = exampleSpec('dns', { ports: [portSpec(53, nodeTargets(30053), 'UDP')] });

describe('the log of a container', () => {
  test('is not read where nothing depends on it', async () => {
    await using site = fixture(line(1, 'kind:default:web:80:ipv4'));
    await site.watch.watch('lb', tcp, 1000);
    await settle();
    expect(site.engine.calls).toEqual([]);
  });

  test('reports changes where they are wanted, with the time of the line', async () => {
    await using site = fixture(line(1, 'kind:default:web:80:ipv4'), { followsTargets: true });
    await site.watch.watch('lb', tcp, 1000);
    const time = Date.parse('2026-11-21T23:31:01.500Z');
    const change = { id: tcp.id, port: 80, ipFamily: 'IPv4', target: 'node1', isUp: false, reason, time };
    await expect.poll(() => site.changes).toEqual([change]);
    expect(site.engine.calls).toEqual(['logs --follow --timestamps --since=1.000 lb']);
    expect(site.count).toBe(0);
  });

  test('is opened again where it ended, and no line is reported twice', async () => {
    const lines = line(1, 'kind:default:web:80:ipv4') + line(2, 'kind:default:web:80:ipv4', 'UP');
    await using site = fixture('', {
      followsTargets: true,
      streams: [lines, lines + line(3, 'kind:default:web:80:ipv4')],
    });
    await site.watch.watch('lb', tcp, 1000);
    await expect.poll(() => site.changes.length).toBe(2);
    await expect.poll(() => site.clock.sleeping).toBe(1);
    await site.clock.advance(1000);
    await expect.poll(() => site.changes.map(({ isUp }) => isUp)).toEqual([false, true, false]);
    expect(site.engine.calls.at(-1)).toBe('logs --follow --timestamps --since=2026-11-21T23:31:02.500000000Z lb');
  });

  test('makes kernel rules follow, and again after a failure, which is logged once', async () => {
    await using site = fixture(line(1, 'kind:default:dns:check:ipv4'));
    site.answers.push('busy', 'still busy', undefined);
    await site.watch.watch('lb', udp, 0);
    await expect.poll(() => site.count).toBe(1);
    await site.clock.advance(1000);
    await site.clock.advance(1000);
    expect(site.count).toBe(3);
    expect(site.changes.map(({ port, target, isUp }) => [port, target, isUp])).toEqual([[53, 'node1', false]]);
    expect(site.log.transitions).toEqual([
      'warn kernel rules do not follow the health of targets',
      'info kernel rules follow the health of targets again',
    ]);
  });
});

describe('a line of logs --timestamps', () => {
  test.each([
    ['Docker', '2026-11-21T22:32:43.494955976Z text', 1795300363494.955],
    ['Podman, elsewhere', '2026-11-21T23:32:43.494955976+01:00 text', 1795300363494.955],
    ['a whole second', '2026-11-21T22:32:43Z text', 1795300363000],
  ])('of %s', (_, raw, time) => {
    expect(parseStampedLine(raw)).toEqual({ stamp: raw.slice(0, -5), time: expect.closeTo(time, 2), text: 'text' });
  });

  test.each(['text', '', 'Error: no such container'])('is not %j', (raw) => {
    expect(parseStampedLine(raw)).toBeUndefined();
  });
});
