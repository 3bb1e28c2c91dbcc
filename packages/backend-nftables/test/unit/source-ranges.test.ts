import type { ForwardingTable } from '@switchyard/core';
import { situation, type SituationSpec, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { Driven } from './support.ts';

const vip = '198.51.100.7';
const cart = (spec: SituationSpec): ForwardingTable =>
  situation(
    { cart: { loadBalancerIps: [vip], endpoints: [there('10.244.2.1')], ...spec } },
    { nodeAddresses: ['192.0.2.1'] },
  );
const ranges = (...sourceRanges: readonly string[]): ForwardingTable => cart({ sourceRanges });

/** Allowed sources of the load-balancer IP in the kernel. */
const allowed = (driven: Driven): readonly string[] =>
  driven.nft.elements('switchyard', 'fw-allow4').map((key) => key.replace(`${vip} . tcp . 80 . `, ''));

test.each<[string, readonly string[], readonly string[], number]>([
  ['no ranges restrict nothing', [], [], 0],
  ['ranges of the other family restrict nothing', ['2001:db8::/32'], [], 0],
  ['a range of everything restricts nothing', ['0.0.0.0/0', '10.0.0.0/8'], [], 0],
  ['a range lets its sources in', ['10.0.0.0/8'], ['10.0.0.0/8'], 1],
  ['a range within another is left out', ['10.1.0.0/16', '10.0.0.0/8'], ['10.0.0.0/8'], 1],
  ['the same range twice is one', ['10.0.0.0/8', '10.0.0.0/8'], ['10.0.0.0/8'], 1],
  [
    'a range that holds the node lets in what comes from the IP itself',
    ['192.0.2.0/24'],
    ['192.0.2.0/24', `${vip}/32`],
    1,
  ],
])('%s', async (_, given, expected, restricted) => {
  const driven = await Driven.open();
  expect(await driven.full(ranges(...given))).toMatchObject({ status: 'applied' });
  expect(allowed(driven)).toEqual(expected);
  expect((await driven.dump()).match(/^  sources: /gm) ?? []).toHaveLength(restricted);
});

test('only the load-balancer IP is restricted', async () => {
  const driven = await Driven.open();
  const ports = [{ port: 80, nodePort: 30080 }];
  await driven.full(cart({ ports, externalIps: ['198.51.100.8'], sourceRanges: ['10.0.0.0/8'] }));
  const [restricted, ...others] = (await driven.dump()).split('\n').filter((line) => line.includes('sources: '));
  expect([restricted, others]).toEqual(['  sources: 10.0.0.0/8', []]);
  expect(await driven.dump()).toContain(`frontend ${vip}:80/TCP\n  sources: `);
});

test.each<[string, readonly string[], readonly string[], number]>([
  ['one range more is one write', ['10.0.0.0/8'], ['10.0.0.0/8', '172.16.0.0/12'], 1],
  ['a wider range replaces a narrower one', ['10.1.0.0/16'], ['10.0.0.0/8'], 2],
  ['a narrower range replaces a wider one', ['10.0.0.0/8'], ['10.1.0.0/16', '10.2.0.0/16'], 3],
  ['the first range restricts: the frontend says so', [], ['10.0.0.0/8'], 3],
  ['the last range lets everybody in', ['10.0.0.0/8'], [], 3],
])('%s', async (_, before, after, writes) => {
  const driven = await Driven.open();
  await driven.full(ranges(...before));
  expect(await driven.next(ranges(...after))).toEqual({ status: 'applied', writes });
  expect(allowed(driven)).toEqual([...after]);
});

test('a process with no memory reads them back and writes nothing', async () => {
  const nft = new FakeNft();
  const table = ranges('10.0.0.0/8', '172.16.0.1/32');
  await (await Driven.open(nft)).full(table);
  expect(await (await Driven.open(nft)).full(table)).toEqual({ status: 'applied', writes: 0 });
});

test('a foreign allowed source is removed', async () => {
  const driven = await Driven.open();
  const table = ranges('10.0.0.0/8');
  await driven.full(table);
  driven.nft.ruleset.transaction(`add element inet switchyard fw-allow4 { ${vip} . tcp . 80 . 203.0.113.0/24 }\n`);
  expect(await driven.full(table)).toEqual({ status: 'applied', writes: 1 });
  expect(allowed(driven)).toEqual(['10.0.0.0/8']);
});

test('the dump names ranges that restrict nothing', async () => {
  const driven = await Driven.open();
  await driven.full(ranges('10.0.0.0/8'));
  driven.nft.ruleset.transaction(`delete element inet switchyard fw-allow4 { ${vip} . tcp . 80 . 10.0.0.0/8 }
add element inet switchyard fw-allow4 { 10.96.0.10 . tcp . 80 . 10.0.0.0/8 }
add element inet switchyard fw-allow4 { 203.0.113.1 . udp . 53 . 10.0.0.0/8 }
`);
  const dump = await driven.dump();
  expect(dump).toContain(`frontend ${vip}:80/TCP\n  sources: none\n`);
  expect(dump).toContain('frontend 10.96.0.10:80/TCP\n  sources: 10.0.0.0/8, without effect\n');
  expect(dump).toContain('source ranges of no frontend: 203.0.113.1:53/UDP\n');
});
