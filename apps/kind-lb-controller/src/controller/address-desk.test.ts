import { HostError, millis, parseCidr, parseIp, type ServiceKey, serviceKey } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import type { AddressSource } from '../plan/ip-pool.ts';
import { lbService } from '../testing/builders.ts';
import { AddressDesk } from './address-desk.ts';

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
let desk: AddressDesk;

beforeEach(() => {
  clock = new ManualClock();
  source = pool;
  reads = 0;
  desk = new AddressDesk({
    readSource: () => {
      reads++;
      return source instanceof Error ? Promise.reject(source) : Promise.resolve(source);
    },
    clock,
  });
  for (const cluster of ['a', 'b']) desk.adopt(cluster, []);
});

test('nothing is granted before the source is known', async () => {
  desk.observe('a', [lbService('default/web')]);
  expect(desk.isOpen).toBe(false);
  expect(desk.grantOf(idOf('a', 'web'))).toBeUndefined();
  await desk.refresh(millis(0), signal);
  expect(desk.isOpen).toBe(true);
  expect(desk.grantOf(idOf('a', 'web'))?.addresses).toEqual(['172.18.255.1']);
});

test('the source is read once for all who ask at the same time, and again when it is too old', async () => {
  await Promise.all([desk.refresh(millis(5000), signal), desk.refresh(millis(5000), signal)]);
  await clock.advance(5000);
  await desk.refresh(millis(5000), signal);
  expect(reads).toBe(1);
  await clock.advance(1);
  await desk.refresh(millis(5000), signal);
  expect(reads).toBe(2);
});

test('a source that cannot be read is an error for who asks; what is known stays', async () => {
  desk.observe('a', [lbService('default/web')]);
  await desk.refresh(millis(0), signal);
  source = new HostError('docker.engineDown', 'the engine is away');
  await clock.advance(1);
  await expect(desk.refresh(millis(0), signal)).rejects.toBe(source);
  expect(desk.grantOf(idOf('a', 'web'))?.addresses).toEqual(['172.18.255.1']);
});

test('one that asks with others and is aborted does not spoil it for them', async () => {
  const first = new AbortController();
  let isFirst = true;
  const own = new AddressDesk({
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

test('an address that is given back in one cluster goes to who waits for it in another, who is told', async () => {
  const told: string[] = [];
  for (const cluster of ['a', 'b']) desk.join(cluster, (keys) => told.push(...keys.map((key) => `${cluster} ${key}`)));
  desk.observe('a', [lbService('default/one'), lbService('default/two')]);
  await desk.refresh(millis(0), signal);
  desk.observe('b', [lbService('default/late', { createdAt: '2026-02-01T00:00:00Z' })]);
  expect(desk.grantOf(idOf('b', 'late'))?.addresses).toEqual([]);
  told.length = 0;
  desk.observe('a', [lbService('default/two')]);
  expect(told).toEqual([]); // one's load balancer may still run
  desk.release(idOf('a', 'one'));
  expect(told).toEqual(['b default/late']);
  expect(desk.grantOf(idOf('b', 'late'))?.addresses).toEqual(['172.18.255.1']);
});

test('what runs already keeps its address, whoever asks first', async () => {
  desk.adopt('a', [{ id: idOf('a', 'two'), addresses: [parseIp('172.18.255.1')] }]);
  desk.observe('a', [lbService('default/one'), lbService('default/two')]);
  await desk.refresh(millis(0), signal);
  expect(desk.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.2']);
  expect(desk.grantOf(idOf('a', 'two'))?.addresses).toEqual(['172.18.255.1']);
});

test('a cluster that nobody serves for a while keeps its addresses; one that is gone does not', async () => {
  desk.observe('a', [lbService('default/one')]);
  await desk.refresh(millis(0), signal);
  desk.leave('a');
  desk.observe('b', [lbService('default/two')]);
  expect(desk.grantOf(idOf('b', 'two'))?.addresses).toEqual(['172.18.255.2']);
  desk.adopt('a', [{ id: idOf('a', 'one'), addresses: [parseIp('172.18.255.1')] }]);
  desk.observe('a', [lbService('default/one')]);
  expect(desk.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.1']);
  desk.forget('a');
  desk.observe('b', [lbService('default/two'), lbService('default/three')]);
  expect(desk.grantOf(idOf('b', 'three'))?.addresses).toEqual(['172.18.255.1']);
});

test('a load balancer of a cluster that nobody serves here yet, or somebody else serves, keeps its address', async () => {
  const running = { id: idOf('b', 'two'), addresses: [parseIp('172.18.255.1')] };
  source = { ...pool, held: [running] };
  desk.leave('b');
  await desk.refresh(millis(0), signal);
  desk.observe('a', [lbService('default/one')]);
  expect(desk.grantOf(idOf('a', 'one'))?.addresses).toEqual(['172.18.255.2']);
  desk.observe('b', [lbService('default/two')]);
  expect(desk.grantOf(idOf('b', 'two'))).toBeUndefined(); // its running load balancers are unknown
  desk.adopt('b', [running]);
  expect(desk.grantOf(idOf('b', 'two'))?.addresses).toEqual(['172.18.255.1']);
  // The next controller has removed that one.
  desk.leave('b');
  source = { ...pool, held: [] };
  await clock.advance(1);
  await desk.refresh(millis(0), signal);
  desk.observe('a', [lbService('default/one'), lbService('default/late', { createdAt: '2026-02-01T00:00:00Z' })]);
  expect(desk.grantOf(idOf('a', 'late'))?.addresses).toEqual(['172.18.255.1']);
});

test('a cluster that is gone keeps nothing, whatever happened since it was served', async () => {
  desk.observe('a', [lbService('default/one')]);
  await desk.refresh(millis(0), signal);
  desk.leave('a');
  desk.observe('b', [lbService('default/two')]);
  desk.forget('a');
  desk.observe('b', [lbService('default/two'), lbService('default/three')]);
  expect(desk.grantOf(idOf('b', 'three'))?.addresses).toEqual(['172.18.255.1']);
});

test('what a load balancer was given is known until it is released', async () => {
  desk.observe('a', [lbService('default/one')]);
  await desk.refresh(millis(0), signal);
  desk.observe('a', [lbService('default/one', { spec: { loadBalancerClass: 'example.com/lb' } })]);
  expect(desk.addressesOf(idOf('a', 'one'))).toEqual(['172.18.255.1']);
  desk.release(idOf('a', 'one'));
  expect(desk.addressesOf(idOf('a', 'one'))).toEqual([]);
});

test('a source that cannot be read is asked for once for all who wait', async () => {
  source = new HostError('docker.engineDown', 'the engine is away');
  const all = await Promise.allSettled(Array.from({ length: 10 }, () => desk.refresh(millis(0), signal)));
  expect(all.every(({ status }) => status === 'rejected')).toBe(true);
  expect(reads).toBe(1);
});
