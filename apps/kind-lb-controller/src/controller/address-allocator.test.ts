import { HostError, millis, parseCidr, parseIp, type ServiceKey, serviceKey } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import type { AddressSource } from '../plan/ip-pool.ts';
import { lbService } from '../testing/builders.ts';
import { AddressAllocator } from './address-allocator.ts';

/** Room for two. */
const pool = { kind: 'pool', cidrs: [parseCidr('172.18.255.0/30')] } as const;
const { signal } = new AbortController();
const idOf = (cluster: string, name: string): { cluster: string; service: ServiceKey } => ({
  cluster,
  service: serviceKey('default', name),
});

let clock: ManualClock;
let source: AddressSource | Error;
let reads: number;
let allocator: AddressAllocator;

beforeEach(() => {
  clock = new ManualClock();
  source = pool;
  reads = 0;
  allocator = new AddressAllocator({
    readSource: () => {
      reads++;
      return source instanceof Error ? Promise.reject(source) : Promise.resolve(source);
    },
    clock,
  });
  for (const cluster of ['a', 'b']) allocator.adopt(cluster, []);
});

test('nothing is granted before the source is known', async () => {
  allocator.observe('a', [lbService('default/web')]);
  expect(allocator.isOpen).toBe(false);
  expect(allocator.grantOf(idOf('a', 'web'))).toBeUndefined();
  await allocator.refresh(millis(0), signal);
  expect(allocator.isOpen).toBe(true);
  expect(allocator.grantOf(idOf('a', 'web'))?.addresses).toEqual(['172.18.255.1']);
});

test('the source is read once for all who ask at the same time, and again when it is too old', async () => {
  await Promise.all([allocator.refresh(millis(5000), signal), allocator.refresh(millis(5000), signal)]);
  await clock.advance(5000);
  await allocator.refresh(millis(5000), signal);
  expect(reads).toBe(1);
  await clock.advance(1);
  await allocator.refresh(millis(5000), signal);
  expect(reads).toBe(2);
});

test('a source that cannot be read is an error for who asks; what is known stays', async () => {
  allocator.observe('a', [lbService('default/web')]);
  await allocator.refresh(millis(0), signal);
  source = new HostError('docker.engineDown', 'the engine is away');
  await clock.advance(1);
  await expect(allocator.refresh(millis(0), signal)).rejects.toBe(source);
  expect(allocator.grantOf(idOf('a', 'web'))?.addresses).toEqual(['172.18.255.1']);
});

test('one that asks with others and is aborted does not spoil it for them', async () => {
  const first = new AbortController();
  let isFirst = true;
  const own = new AddressAllocator({
    readSource: (asking) => {
      if (!isFirst) return Promise.resolve(pool);
      isFirst = false;
      return new Promise((_, reject) => asking.addEventListener('abort', () => reject(asking.reason)));
    },
    clock,
  });
  const aborted = own.refresh(millis(0), first.signal);
  const other = own.refresh(millis(0), signal);
  first.abort(new Error('stopped'));
  await expect(aborted).rejects.toThrow('stopped');
  await other;
  expect(own.isOpen).toBe(true);
});

test('an address released in one cluster is granted to a waiting Service of another, which is reported', async () => {
  const reported: string[] = [];
  for (const cluster of ['a', 'b'])
    allocator.join(cluster, (keys) => reported.push(...keys.map((key) => `${cluster} ${key}`)));
  allocator.observe('a', [lbService('default/one'), lbService('default/two')]);
  await allocator.refresh(millis(0), signal);
  allocator.observe('b', [lbService('default/late', { createdAt: '2026-02-01T00:00:00Z' })]);
  expect(allocator.grantOf(idOf('b', 'late'))?.addresses).toEqual([]);
  reported.length = 0;
  allocator.observe('a', [lbService('default/two')]);
  expect(reported).toEqual([]); // one's load balancer may still run
  allocator.release(idOf('a', 'one'));
  expect(reported).toEqual(['b default/late']);
  expect(allocator.grantOf(idOf('b', 'late'))?.addresses).toEqual(['172.18.255.1']);
});

test('a running load balancer keeps its address, even if another Service comes first', async () => {
  allocator.adopt('a', [{ id: idOf('a', 'two'), addresses: [parseIp('172.18.255.1')] }]);
  allocator.observe('a', [lbService('default/one'), lbService('default/two')]);
  await allocator.refresh(millis(0), signal);
  expect(allocator.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.2']);
  expect(allocator.grantOf(idOf('a', 'two'))?.addresses).toEqual(['172.18.255.1']);
});

test('a cluster that is not served for a while keeps its addresses; a deleted one does not', async () => {
  allocator.observe('a', [lbService('default/one')]);
  await allocator.refresh(millis(0), signal);
  allocator.leave('a');
  allocator.observe('b', [lbService('default/two')]);
  expect(allocator.grantOf(idOf('b', 'two'))?.addresses).toEqual(['172.18.255.2']);
  allocator.adopt('a', [{ id: idOf('a', 'one'), addresses: [parseIp('172.18.255.1')] }]);
  allocator.observe('a', [lbService('default/one')]);
  expect(allocator.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.1']);
  allocator.forget('a');
  allocator.observe('b', [lbService('default/two'), lbService('default/three')]);
  expect(allocator.grantOf(idOf('b', 'three'))?.addresses).toEqual(['172.18.255.1']);
});

test('a load balancer of a cluster not served yet, or served by another controller, keeps its address', async () => {
  const running = { id: idOf('b', 'two'), addresses: [parseIp('172.18.255.1')] };
  source = { ...pool, held: [running] };
  allocator.leave('b');
  await allocator.refresh(millis(0), signal);
  allocator.observe('a', [lbService('default/one')]);
  expect(allocator.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.2']);
  allocator.observe('b', [lbService('default/two')]);
  expect(allocator.grantOf(idOf('b', 'two'))).toBeUndefined(); // its running load balancers are unknown
  allocator.adopt('b', [running]);
  expect(allocator.grantOf(idOf('b', 'two'))?.addresses).toEqual(['172.18.255.1']);
  // The next controller has removed that one.
  allocator.leave('b');
  source = { ...pool, held: [] };
  await clock.advance(1);
  await allocator.refresh(millis(0), signal);
  allocator.observe('a', [lbService('default/one'), lbService('default/late', { createdAt: '2026-02-01T00:00:00Z' })]);
  expect(allocator.grantOf(idOf('a', 'late'))?.addresses).toEqual(['172.18.255.1']);
});

test('a deleted cluster keeps nothing, regardless of events since it was served', async () => {
  allocator.observe('a', [lbService('default/one')]);
  await allocator.refresh(millis(0), signal);
  allocator.leave('a');
  allocator.observe('b', [lbService('default/two')]);
  allocator.forget('a');
  allocator.observe('b', [lbService('default/two'), lbService('default/three')]);
  expect(allocator.grantOf(idOf('b', 'three'))?.addresses).toEqual(['172.18.255.1']);
});

test('what a load balancer was given is known until it is released', async () => {
  allocator.observe('a', [lbService('default/one')]);
  await allocator.refresh(millis(0), signal);
  allocator.observe('a', [lbService('default/one', { spec: { loadBalancerClass: 'example.com/lb' } })]);
  expect(allocator.addressesOf(idOf('a', 'one'))).toEqual(['172.18.255.1']);
  allocator.release(idOf('a', 'one'));
  expect(allocator.addressesOf(idOf('a', 'one'))).toEqual([]);
});

test('an unreadable source is read once for all waiting callers', async () => {
  source = new HostError('docker.engineDown', 'the engine is away');
  const all = await Promise.allSettled(Array.from({ length: 10 }, () => allocator.refresh(millis(0), signal)));
  expect(all.every(({ status }) => status === 'rejected')).toBe(true);
  expect(reads).toBe(1);
});
