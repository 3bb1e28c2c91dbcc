import { parseCidr, parseIp, serviceKey } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { lbService, type RawServiceSpec } from '../testing/builders.ts';
import { AddressBook } from './address-book.ts';
import { loadBalancerKey } from '../spec/load-balancer-spec.ts';
import type { AddressSource, HeldAddresses } from './ip-pool.ts';

const source: AddressSource = { kind: 'pool', cidrs: [parseCidr('192.0.2.0/29')] };
const id = (cluster: string, name: string): HeldAddresses['id'] => ({ cluster, service: serviceKey('default', name) });
const held = (cluster: string, name: string, ...addresses: readonly string[]): HeldAddresses => ({
  id: id(cluster, name),
  addresses: addresses.map(parseIp),
});
const web = (name: string, parts: RawServiceSpec = {}): ReturnType<typeof lbService> =>
  lbService(`default/${name}`, parts);
const showing = (...ips: readonly string[]): RawServiceSpec => ({
  status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } },
});
const lastOctets = (book: AddressBook, from: AddressSource = source): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...book.assign(from).values()].map((grant) => [
      `${grant.id.cluster}/${grant.id.service.slice('default/'.length)}`,
      grant.addresses.map((ip) => ip.slice('192.0.2.'.length)).join(),
    ]),
  );

describe('several clusters on one network', () => {
  test('never get the same address, though no status says yet who has which', () => {
    const book = new AddressBook();
    book.observe('red', [web('a')]);
    expect(lastOctets(book)).toEqual({ 'red/a': '1' });
    book.observe('blue', [web('a', { createdAt: '2020-01-01T00:00:00Z' })]);
    expect(lastOctets(book)).toEqual({ 'red/a': '1', 'blue/a': '2' });
  });
  test('an address in a status is in use, in any cluster and of any class', () => {
    const book = new AddressBook();
    book.observe('red', [
      web('a', showing('192.0.2.1')),
      web('z', { ...showing('192.0.2.2'), spec: { loadBalancerClass: 'x.dev/y' } }),
    ]);
    book.observe('blue', [web('b', { createdAt: '2020-01-01T00:00:00Z' })]);
    expect(lastOctets(book)).toEqual({ 'red/a': '1', 'blue/b': '3' });
  });
  test('a Service of another class gains nothing by showing a granted address', () => {
    const book = new AddressBook();
    const foreign = { ...showing('192.0.2.1'), spec: { loadBalancerClass: 'x.dev/y' } };
    book.observe('red', [web('a', foreign), web('b', showing('192.0.2.1'))]);
    expect(lastOctets(book)).toEqual({ 'red/b': '1' });
  });
  test('what runs is taken, even if its cluster was not listed yet', () => {
    const book = new AddressBook();
    book.adopt([held('blue', 'b', '192.0.2.1')]);
    book.observe('red', [web('a')]);
    expect(lastOctets(book)).toEqual({ 'red/a': '2' });
    book.observe('blue', [web('b')]);
    expect(lastOctets(book)).toEqual({ 'red/a': '2', 'blue/b': '1' });
  });
  test('the holder of a requested address is named with its cluster', () => {
    const book = new AddressBook();
    book.observe('red', [web('a', showing('192.0.2.4'))]);
    book.observe('blue', [web('b', { spec: { loadBalancerIP: '192.0.2.4' } })]);
    expect(book.assign(source).get(loadBalancerKey(id('blue', 'b')))).toMatchObject({
      addresses: ['192.0.2.1'],
      refused: { reason: 'heldBy', holder: id('red', 'a') },
    });
  });
});

describe('a load balancer', () => {
  test('keeps its address over restarts of the controller, by what runs or by what its status shows', () => {
    const byRuntime = new AddressBook();
    byRuntime.adopt([held('red', 'a', '192.0.2.5')]);
    byRuntime.observe('red', [web('a')]);
    expect(lastOctets(byRuntime)).toEqual({ 'red/a': '5' });
    const byStatus = new AddressBook();
    byStatus.adopt([held('red', 'a')]); // half made
    byStatus.observe('red', [web('a', showing('192.0.2.6'))]);
    expect(lastOctets(byStatus)).toEqual({ 'red/a': '6' });
  });
  test('keeps its address from others until it was removed, though its Service is gone', () => {
    const book = new AddressBook();
    book.observe('red', [web('a')]);
    lastOctets(book);
    book.observe('red', []);
    book.observe('blue', [web('b')]);
    expect(lastOctets(book)).toEqual({ 'blue/b': '2' });
    book.release(id('red', 'a'));
    book.observe('blue', [web('b'), web('c')]);
    expect(lastOctets(book)).toEqual({ 'blue/b': '2', 'blue/c': '1' });
  });
  test('moves to the requested address, and holds the old one until its status shows the new one', () => {
    const book = new AddressBook();
    const moving = { ...showing('192.0.2.1'), spec: { loadBalancerIP: '192.0.2.3' } };
    book.observe('red', [web('a', moving), web('b')]);
    expect(lastOctets(book)).toEqual({ 'red/a': '3', 'red/b': '2' });
    book.observe('red', [web('a', { ...showing('192.0.2.3'), spec: moving.spec }), web('b'), web('c')]);
    expect(lastOctets(book)).toEqual({ 'red/a': '3', 'red/b': '2', 'red/c': '1' });
  });
  test('does not take what another one has by asking for it, however old it is', () => {
    const book = new AddressBook();
    const old = web('old', { createdAt: '2020-01-01T00:00:00Z', spec: { loadBalancerIP: '192.0.2.1' } });
    book.observe('red', [web('young', showing('192.0.2.1')), old]);
    expect(lastOctets(book)).toEqual({ 'red/young': '1', 'red/old': '2' });
  });
  test('has its address again after a time without any', () => {
    const book = new AddressBook();
    book.observe('red', [web('a', { spec: { loadBalancerIP: '192.0.2.4' } })]);
    expect(lastOctets(book)).toEqual({ 'red/a': '4' });
    expect(lastOctets(book, { kind: 'pool', cidrs: [] })).toEqual({ 'red/a': '' });
    book.observe('red', [
      web('a'),
      web('b', { createdAt: '2020-01-01T00:00:00Z', spec: { loadBalancerIP: '192.0.2.4' } }),
    ]);
    expect(lastOctets(book)).toEqual({ 'red/a': '4', 'red/b': '1' });
  });
  test('gives up an address that another host on the network has', () => {
    const book = new AddressBook();
    book.observe('red', [web('a', showing('192.0.2.1'))]);
    expect(lastOctets(book, { ...source, reserved: [parseIp('192.0.2.1')] })).toEqual({ 'red/a': '2' });
  });
});

test('asked again, it gives the same', () => {
  const book = new AddressBook();
  book.observe('red', [
    web('a'),
    web('b', { spec: { loadBalancerIP: '192.0.2.1' } }),
    web('c', { spec: { ipFamilies: ['IPv6'] } }),
  ]);
  const first = book.assign(source);
  expect(book.assign(source)).toEqual(first);
  expect(lastOctets(book)).toEqual({ 'red/a': '2', 'red/b': '1', 'red/c': '' });
});
