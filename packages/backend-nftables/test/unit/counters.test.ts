import { type ForwardingTable, type ServicePortKey } from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { flow, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { tracePacket } from '../../src/testing/trace-packet.ts';
import { Driven, signal } from './support.ts';

const vip = '198.51.100.7:80';
const none: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

const cart = (spec: SituationSpec): ForwardingTable =>
  situation({
    cart: {
      ports: [{ port: 80, nodePort: 30080 }],
      loadBalancerIps: ['198.51.100.7'],
      endpoints: [there('10.244.2.1'), there('10.244.2.2')],
      ...spec,
    },
  });

async function countersOf(driven: Driven): Promise<ServiceCounters | undefined> {
  return (await driven.backend.observers.counters?.(signal))?.get('shop/cart:/TCP' as ServicePortKey);
}

test('connections of all frontends of a service are counted, each once', async () => {
  const driven = await Driven.open();
  await driven.full(cart({}));
  expect(await countersOf(driven)).toEqual(none);
  tracePacket(driven.nft, flow('pod', '10.96.0.10:80'));
  tracePacket(driven.nft, flow('outside', vip));
  tracePacket(driven.nft, flow('outside', '192.0.2.1:30080', { isLocal: true }));
  tracePacket(driven.nft, flow('pod', '10.96.0.10:81'));
  expect(await countersOf(driven)).toEqual({ ...none, connections: 3 });
});

test.each<[string, SituationSpec, Partial<ServiceCounters['drops']>]>([
  ['no endpoint on this node', { external: 'Local' }, { noLocalEndpoint: 1 }],
  ['no endpoint anywhere', { endpoints: [] }, { noEndpoints: 1 }],
  ['a source in none of the ranges', { sourceRanges: ['10.0.0.0/8'] }, { sourceRange: 1 }],
])('what is refused is a connection and counted by reason: %s', async (_, spec, drops) => {
  const driven = await Driven.open();
  await driven.full(cart(spec));
  tracePacket(driven.nft, flow('outside', vip));
  expect(await countersOf(driven)).toEqual({ connections: 1, drops: { ...none.drops, ...drops } });
});

test('totals go on while endpoints come and go, when decisions change, and in another process', async () => {
  const nft = new FakeNft();
  const driven = await Driven.open(nft);
  await driven.full(cart({ endpoints: [] }));
  tracePacket(nft, flow('outside', vip));
  expect((await countersOf(driven))?.connections).toBe(1);
  await driven.next(cart({ endpoints: [there('10.244.2.1')] }));
  tracePacket(nft, flow('outside', vip));
  await driven.next(cart({}));
  const total = { ...none, connections: 2, drops: { ...none.drops, noEndpoints: 1 } };
  expect(await countersOf(driven)).toEqual(total);
  const restarted = await Driven.open(nft);
  expect(await countersOf(restarted)).toBeUndefined();
  await restarted.full(cart({}));
  tracePacket(nft, flow('outside', vip));
  // The frontend was replaced before this process: what it had counted until then is gone with the old one.
  expect(await countersOf(restarted)).toEqual({ ...total, connections: 2 });
});

test('a new service does not inherit the refusals of a removed one', async () => {
  const nft = new FakeNft();
  await (await Driven.open(nft)).full(cart({ endpoints: [] }));
  tracePacket(nft, flow('outside', vip));
  await (await Driven.open(nft)).full(situation({}));
  const driven = await Driven.open(nft);
  await driven.full(cart({}));
  expect(await countersOf(driven)).toEqual(none);
});

test('the dump does not show counts', async () => {
  const driven = await Driven.open();
  await driven.full(cart({}));
  const before = await driven.dump();
  tracePacket(driven.nft, flow('outside', vip));
  expect(await driven.dump()).toBe(before);
  expect(await driven.full(cart({}))).toEqual({ status: 'applied', writes: 0 });
});
