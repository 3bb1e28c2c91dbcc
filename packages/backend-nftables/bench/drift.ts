/*
 * Prints how long it takes from foreign damage to a healed table, per kind of damage and number of services, in a
 * network namespace of its own, and whether all are healed within a second. Needs root. Arguments: services, rounds;
 * repeated. Takes 1.4 s per round and kind.
 */
import { addressNumber, node, replaceAll, service, slice } from '@switchyard/core/testing';
import { createLab } from '@switchyard/lab';
import { Healing } from '../test/privileged/healing.ts';

const endpointsPerService = 10;
const damages: Readonly<Record<string, string>> = {
  'flush ruleset': 'flush ruleset',
  'table deleted': 'delete table inet TABLE',
  'element deleted': 'delete element inet TABLE frontends4 { 10.0.0.1 . tcp . 80 }',
  'element altered':
    'delete element inet TABLE frontends4 { 10.0.0.1 . tcp . 80 }\nadd element inet TABLE frontends4 { 10.0.0.1 . tcp . 80 : 0x40000001 }',
  'rule added': 'insert rule inet TABLE services drop',
  'rules deleted': 'flush chain inet TABLE services',
};

function cluster(services: number): ReturnType<typeof replaceAll> {
  const keys = Array.from({ length: services }, (_, index) => `bench/s${index}`);
  return replaceAll({
    services: keys.map((key, index) => service(key, { clusterIps: [addressNumber(10, index + 1)] })),
    slices: keys.map((key, index) =>
      slice(key, {
        endpoints: Array.from({ length: endpointsPerService }, (_, at) => addressNumber(11, index * 16 + at)),
      }),
    ),
    nodes: [node('n1')],
  });
}

const at = (sorted: readonly number[], share: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN).toFixed(0);

const verdict = (sorted: readonly number[]): string => (Number(at(sorted, 0.99)) < 1000 ? 'PASS' : 'FAIL');

const { signal } = new AbortController();
const numbers = process.argv.slice(2).map(Number);
const lab = await createLab({ name: 'driftb', nodes: 1, ipFamilies: ['IPv4'] }, signal);
process.stdout.write(
  '| services | damage | rounds | p50 ms | p99 ms | max ms | p99 < 1 s |\n|---|---|---|---|---|---|---|\n',
);
try {
  for (let index = 0; index < numbers.length; index += 2) {
    const [services = 0, rounds = 0] = numbers.slice(index, index + 2);
    const host = lab.nodes[0] ?? lab.client;
    const healing = await Healing.start(host, cluster(services));
    for (const [name, damage] of Object.entries(damages)) {
      const times: number[] = [];
      for (let round = 0; round < rounds; round++) times.push(await healing.heal(damage));
      times.sort((left, right) => left - right);
      const cells = [services, name, rounds, at(times, 0.5), at(times, 0.99), at(times, 1), verdict(times)];
      process.stdout.write(`| ${cells.join(' | ')} |\n`);
    }
    await healing.cleanup();
    await healing[Symbol.asyncDispose]();
  }
} finally {
  await lab[Symbol.asyncDispose]();
}
