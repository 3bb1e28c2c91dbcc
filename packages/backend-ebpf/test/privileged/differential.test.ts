import { ebpfTraits } from '../../src/traits.ts';
import { randomUUID } from 'node:crypto';
import {
  addressAndPort,
  explain,
  type Flow,
  type ForwardingTable,
  type IpFamily,
  millis,
  parseIp,
  sourceClasses,
} from '@switchyard/core';
import { ManualClock, seededRandom, tableOf, tableOptions } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { MapSet } from '../../src/kernel/kernel.ts';
import { offsetOf, sourceClassIndex } from '../../src/render/layouts.ts';
import { ServiceWriter } from '../../src/kernel/maps/service-writer.ts';
import { addressFlags } from '../../src/kernel/node-addresses/node-addresses.ts';
import { addressBytes } from '../../src/render/settings/address-bytes.ts';
import { Settings } from '../../src/kernel/settings/settings.ts';
import { pickOutcomes } from '../../src/testing/trace-packet.ts';
import { type PickAnswer, PickProgram, type PickRequest } from './pick-program.ts';
import { describeFlow, Dice, nodeAddressesOf, randomCluster, randomFlow, randomOptions } from './random-cluster.ts';
import { index, WrittenMaps } from './written-maps.ts';

// The same question three times: to the program in the kernel, to its twin in TypeScript, and to core's oracle.

const protocolNumbers = { TCP: 6, UDP: 17, SCTP: 132 };
const tablesOfRun = 6;
const flowsOfTable = 400;

/** One family's maps, written by the same code as the agent's. */
class Bench implements Disposable {
  readonly program = new PickProgram();
  readonly maps = Object.fromEntries(this.program.maps) as MapSet; // the object declares all of them
  readonly #clock = new ManualClock();
  readonly #writer = new ServiceWriter(this.maps, { clock: this.#clock });
  readonly #settings = new Settings({
    maps: () => this.maps,
    hostNetns: () => 1n,
    udpSticky: millis(60_000),
  });
  readonly #written = new WrittenMaps(this.program.maps);

  /** The maps hold this table and nothing else, in ids that were used before. */
  async write(table: ForwardingTable): Promise<void> {
    await this.#clock.advance(millis(2000));
    this.#settings.apply(table);
    this.#written.empty('node_addresses');
    for (const [ip, flags] of addressFlags(nodeAddressesOf(table.ipFamily).map(parseIp), table)) {
      this.maps.node_addresses.update(addressBytes(ip), index(flags));
    }
    const { failed, unremoved } = this.#writer.applyFull(table);
    expect([...failed], 'services that cannot be written').toEqual([]);
    expect(unremoved).toBeUndefined();
  }

  /** The class of sockets that are not the node's own. */
  get podClass(): number {
    return this.maps.configuration.values()[offsetOf('configuration', 'pod_class')] ?? 0;
  }

  [Symbol.dispose](): void {
    this.program[Symbol.dispose]();
  }
}

/** Kind of request: of a packet, whose source is known, or of a socket, whose namespace is known. */
type Path = 'wire' | 'socket';

/** Allowed results: a verdict with its possible endpoints. A client keeps its endpoint while that exists. */
function allowed(table: ForwardingTable, flow: Flow, isKept: boolean): readonly string[] {
  const { verdict, frontend, service } = explain(table, flow, ebpfTraits);
  if (flow.isSentHere === true && frontend !== undefined && frontend.allowedSources !== 'any') return ['pass'];
  if (verdict.kind !== 'forward') return [verdict.kind];
  const known = service === undefined ? [] : (table.services.get(service)?.knownEndpoints ?? []);
  const suffix = verdict.masquerade ? ' masqueraded' : '';
  const endpoints = isKept ? known : verdict.endpoints;
  return endpoints.map(({ address, port }) => `forward ${addressAndPort(address, port)}${suffix}`);
}

function told(answer: Pick<PickAnswer, 'verdict' | 'address' | 'port' | 'masquerade'>, path: Path): string {
  if (answer.verdict !== 'forward') return answer.verdict;
  const suffix = path === 'wire' && answer.masquerade ? ' masqueraded' : '';
  return `forward ${addressAndPort(parseIp(answer.address), answer.port)}${suffix}`;
}

/** Verdict of the tracer for the same random number. Runs first, because the program may pin the client. */
function twin(maps: MapSet, flow: Flow, { class: source, client, random = 0, kept }: PickRequest): unknown {
  const outcomes = pickOutcomes(maps, {
    destination: flow.destination,
    port: flow.destinationPort,
    protocol: flow.protocol,
    from: sourceClasses[source] ?? flow.from,
    client:
      typeof client === 'bigint'
        ? { kind: 'networkNamespace', cookie: client }
        : { kind: 'address', address: flow.source },
    ...(kept === undefined ? {} : { kept }),
  });
  const { kind, ...rest } = outcomes[Math.floor((random * outcomes.length) / 2 ** 32)] ?? { kind: 'none' };
  return { verdict: kind, ...rest };
}

/** A namespace for each source. */
const cookieOf = (flow: Flow): bigint =>
  BigInt(flow.source.length * 1000 + flow.source.charCodeAt(flow.source.length - 1));

function forwardedPart(answer: PickAnswer): unknown {
  const { verdict, isKept: _, ...rest } = answer;
  return verdict === 'forward' ? { verdict, ...rest } : { verdict };
}

describe.each<IpFamily>(['IPv4', 'IPv6'])('%s', (family) => {
  const seed = randomUUID();

  test(`what the program picks is what its twin picks and what explain allows (seed ${seed})`, async () => {
    using bench = new Bench();
    const dice = new Dice(seededRandom(seed));
    const seen = new Map<string, number>();
    /** The last answer for each destination: what an unconnected UDP socket would remember. */
    const before = new Map<string, PickAnswer>();
    for (let round = 0; round < tablesOfRun; round++) {
      const options = tableOptions(randomOptions(dice, family));
      const table = tableOf(randomCluster(dice, family), options);
      await bench.write(table);
      for (let turn = 0; turn < flowsOfTable; turn++) {
        const anyFlow = randomFlow(dice, family);
        const path: Path = anyFlow.from !== 'outside' && dice.is(0.6) ? 'socket' : 'wire';
        const flow: Flow = { ...anyFlow, isSentHere: path === 'socket' };
        const place = `${flow.destination} ${flow.destinationPort} ${flow.protocol}`;
        const kept = dice.is(0.3) ? before.get(place) : undefined;
        const request: PickRequest = {
          destination: flow.destination,
          port: flow.destinationPort,
          protocol: protocolNumbers[flow.protocol],
          class: path === 'wire' || flow.from === 'node' ? sourceClassIndex[flow.from] : bench.podClass,
          client: path === 'wire' ? flow.source : cookieOf(flow),
          random: dice.below(2 ** 32),
          ...(kept === undefined ? {} : { kept }),
        };
        const expected = twin(bench.maps, flow, request);
        const answer = bench.program.ask(request);
        if (answer.verdict === 'forward') before.set(place, answer);
        const what = `seed ${seed}, table ${round}: ${path}, ${describeFlow(flow)}`;
        expect(forwardedPart(answer), what).toEqual(expected);
        expect(allowed(table, flow, answer.isKept), what).toContain(told(answer, path));
        const kind = `${path} ${answer.isKept ? 'kept' : told(answer, path).replace(/ [^ ]*\d/, '')}`;
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
      }
    }
    const onWire = ['forward', 'forward masqueraded', 'reject', 'drop', 'pass'].map((kind) => `wire ${kind}`);
    const bySocket = ['forward', 'kept', 'reject', 'drop', 'pass'].map((kind) => `socket ${kind}`);
    const rare = [...onWire, ...bySocket].filter((kind) => (seen.get(kind) ?? 0) < 5);
    expect(rare, `too rare to say anything, seed ${seed}`).toEqual([]);
  });
});

/** Of n draws from k endpoints: the sum over all of (seen - expected)^2 / expected. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

test.each([2, 3, 7, 10])('%i endpoints get the same share', (count) => {
  using program = new PickProgram();
  const maps = new WrittenMaps(program.maps);
  const random = seededRandom(`share ${count}`);
  const ids = Array.from({ length: count }, (_, position) => position + 1);
  for (const id of ids) maps.endpoint(id, { address: `10.244.0.${id}`, port: 80, service: 1 });
  maps.service(1, { cookie: 1 });
  maps.publish(1, 'cluster_set', maps.slots(1, 64, ids));
  maps.frontend({ address: '10.96.0.1', port: 80, protocol: 6, service: 1, cookie: 1, actions: 1 });
  const counts = ids.map(() => 0);
  for (let draw = 0; draw < 1000; draw++) {
    const number = Math.floor(random() * 2 ** 32);
    const answer = program.ask({
      destination: '10.96.0.1',
      port: 80,
      protocol: 6,
      class: 0,
      client: 1n,
      random: number,
    });
    counts[answer.endpoint - 1] = (counts[answer.endpoint - 1] ?? 0) + 1;
  }
  // One of a thousand fair draws is beyond 27.9 for ten endpoints; the seed is fixed.
  expect(chiSquare(counts)).toBeLessThan(27.9);
});
