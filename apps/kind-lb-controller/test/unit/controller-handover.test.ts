import { parseCidr } from '@switchyard/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ControllerBench, eventually } from './controller-bench.ts';

let bench: ControllerBench;

beforeEach(async () => {
  bench = await ControllerBench.start({ kind: 'pool', cidrs: [parseCidr('172.18.255.0/24')] });
  await bench.createNode('node1', '172.18.0.11');
});
afterEach(() => bench[Symbol.asyncDispose]());

describe('a controller that is killed', () => {
  const hang = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  test.each<[step: string, at: 'ensure' | 'remove' | 'status' | 'finalizer']>([
    ['after the finalizer, before the load balancer', 'ensure'],
    ['after the load balancer, before the status', 'status'],
    ['while a Service waits for its load balancer to go', 'remove'],
    ['after the load balancer went, before the finalizer', 'finalizer'],
  ])('%s leaves what the next one brings to its end, once', async (_, at) => {
    const isRemoval = at === 'remove' || at === 'finalizer';
    const reached = Promise.withResolvers<void>();
    let fault: Disposable | undefined;
    const first = bench.controller();
    if (isRemoval) {
      await bench.create('default/web');
      await bench.served('web');
    }
    if (at === 'ensure' || at === 'remove') {
      bench.runtime.before = (call, signal) => {
        if (call !== at) return undefined;
        reached.resolve();
        return hang(signal);
      };
    } else {
      const target = at === 'status' ? /\/status$/ : /services\/web$/;
      fault = bench.server.faults.inject({ kind: 'status', status: 500 }, { method: 'PATCH', target });
      reached.resolve();
    }
    await (isRemoval ? bench.delete('web') : bench.create('default/web'));
    await reached.promise;
    await eventually(() => {
      if (at === 'status') expect(bench.runtime.changes).toEqual(['ensure default/web']);
      if (at === 'finalizer') expect(bench.runtime.changes.at(-1)).toBe('remove default/web');
    });
    await first.stop();
    bench.runtime.before = () => undefined;
    fault?.[Symbol.dispose]();
    bench.controller();
    if (isRemoval) await bench.gone('web');
    else await bench.served('web');
    const ensured = bench.runtime.changes.filter((change) => change === 'ensure default/web');
    expect(ensured).toHaveLength(1);
  });

  test('leaves nothing behind: the next one removes unwanted load balancers', async () => {
    const first = bench.controller();
    await bench.create('default/web');
    await bench.create('default/stays');
    await bench.served('web');
    await bench.served('stays');
    await first.stop();
    await bench.patch('web', { metadata: { finalizers: null } });
    await bench.delete('web');
    bench.controller();
    await eventually(() =>
      expect([...bench.runtime.running.values()].map(({ id }) => id.service)).toEqual(['default/stays']),
    );
  });
});

describe('two controllers', () => {
  test('one works, the other one waits, and follows', async () => {
    const first = bench.controller('lease');
    await eventually(() => expect(first.log.transitions).toContain('info leading'));
    const second = bench.controller('lease');
    await bench.create('default/web');
    await bench.served('web');
    expect(second.log.transitions).toEqual(['info waiting for the lease']);
    await first.stop();
    await bench.create('default/other');
    await bench.served('other');
    expect(second.log.transitions).toContain('info leading');
    expect(await bench.eventReasonsOf('web')).toEqual(['EnsuringLoadBalancer', 'EnsuredLoadBalancer']);
  });
});
