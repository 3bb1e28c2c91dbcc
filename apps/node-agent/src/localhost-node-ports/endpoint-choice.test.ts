import { type LoopbackNodePort, loopbackNodePort, millis } from '@switchyard/core';
import { ManualClock, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { EndpointChoice } from './endpoint-choice.ts';

const ips = ['10.244.1.1', '10.244.1.2', '10.244.1.3', '10.244.1.4'];

function nodePort(endpoints: readonly string[], affinitySeconds?: number): LoopbackNodePort {
  const spec = { ports: [{ nodePort: 30080 }], ...(affinitySeconds !== undefined && { affinitySeconds }) };
  const table = tableOf(
    { services: [service('shop/cart', spec)], slices: [slice('shop/cart', { endpoints })] },
    tableOptions(),
  );
  const [one] = table.services.values();
  const found = one && loopbackNodePort(one);
  if (found === undefined) throw new Error('nothing is served');
  return found;
}

/** Random numbers that choose these indexes of the four addresses, again and again. */
function choosing(...indexes: readonly number[]): () => number {
  let next = 0;
  return () => (indexes[next++ % indexes.length] ?? 0) / ips.length;
}

const clock = new ManualClock();
const firsts = (choice: EndpointChoice, count: number, source = '127.0.0.1'): readonly string[] =>
  Array.from({ length: count }, () => choice.candidates(source, 1)[0]?.address ?? 'none');

describe('without affinity', () => {
  test('each connection gets an endpoint at random', () => {
    const choice = new EndpointChoice(nodePort(ips), { clock, random: choosing(2, 0, 3, 1) });
    expect(firsts(choice, 4)).toEqual(['10.244.1.3', '10.244.1.1', '10.244.1.4', '10.244.1.2']);
  });

  test('the next ones to try are others, and not more than there are', () => {
    const choice = new EndpointChoice(nodePort(ips), { clock, random: choosing(2, 2, 0, 1) });
    expect(choice.candidates('127.0.0.1', 3).map(({ address }) => address)).toEqual([
      '10.244.1.3',
      '10.244.1.1',
      '10.244.1.2',
    ]);
    choice.update(nodePort(ips.slice(0, 2)));
    expect(choice.candidates('127.0.0.1', 3)).toHaveLength(2);
  });
});

describe('with session affinity', () => {
  test('a client stays until it has made no connection for the timeout', async () => {
    const choice = new EndpointChoice(nodePort(ips, 60), { clock, random: choosing(2, 0) });
    expect(firsts(choice, 3)).toEqual(['10.244.1.3', '10.244.1.3', '10.244.1.3']);
    await clock.advance(60_000);
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    await clock.advance(60_000);
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    await clock.advance(millis(60_001));
    expect(firsts(choice, 2)).toEqual(['10.244.1.1', '10.244.1.1']);
  });

  test('each source address has a pin of its own', () => {
    const choice = new EndpointChoice(nodePort(ips, 60), { clock, random: choosing(2, 0) });
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    expect(firsts(choice, 2, '127.0.0.2')).toEqual(['10.244.1.1', '10.244.1.1']);
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
  });

  test('an endpoint that leaves loses its clients; one that stays keeps them', () => {
    const choice = new EndpointChoice(nodePort(ips, 60), { clock, random: choosing(2, 0) });
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    choice.update(nodePort(['10.244.1.3', '10.244.1.9'], 60));
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    choice.update(nodePort(['10.244.1.9'], 60));
    expect(firsts(choice, 1)).toEqual(['10.244.1.9']);
  });

  test('the endpoint that was reached counts, not the one that was tried first', () => {
    const choice = new EndpointChoice(nodePort(ips, 60), { clock, random: choosing(2, 0) });
    const [, second] = choice.candidates('127.0.0.1', 2);
    choice.pin('127.0.0.1', second!);
    expect(firsts(choice, 1)).toEqual([second?.address]);
  });

  test('switched off and on again, it begins anew', () => {
    const choice = new EndpointChoice(nodePort(ips, 60), { clock, random: choosing(2, 0, 0) });
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    choice.update(nodePort(ips));
    choice.update(nodePort(ips, 60));
    expect(firsts(choice, 1)).toEqual(['10.244.1.1']);
  });

  test('among more than 1,024 sources, the one that was silent for longest loses its pin', () => {
    const choice = new EndpointChoice(nodePort(ips, 60), {
      clock,
      random: choosing(2, ...Array<number>(1024).fill(0), 1),
    });
    expect(firsts(choice, 1)).toEqual(['10.244.1.3']);
    for (let index = 0; index < 1024; index++) firsts(choice, 1, `127.1.${index >> 8}.${index & 255}`);
    expect(firsts(choice, 1)).toEqual(['10.244.1.2']);
  });
});
