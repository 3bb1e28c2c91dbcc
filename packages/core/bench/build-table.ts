/* Prints one table: what building forwarding tables costs. Run by `nx run core:bench` with --expose-gc. */
import { buildTable } from '../src/model/forwarding/build-table.ts';
import { diffTables } from '../src/model/forwarding/build-table.ts';
import type { ForwardingTable } from '../src/model/forwarding/forwarding-table.ts';
import { ClusterState, dirtyServices } from '../src/model/state/cluster-state.ts';
import type { ClusterEvent } from '../src/model/state/cluster-event.ts';
import { nodeName } from '../src/model/records/keys.ts';
import { service, slice, tableOptions, node, replaceAll } from '../src/testing/index.ts';

const options = tableOptions();
/** One text per Node, as a source that interns names has them. */
const nodes = Array.from({ length: 100 }, (_, index) => `n${index}`);

interface Row {
  readonly what: string;
  readonly milliseconds: number;
  readonly heapMegabytes: number | undefined;
}

/** Service i of namespace i/100: a cluster IP, every tenth also a NodePort. */
function bigCluster(services: number, endpoints: number): readonly ClusterEvent[] {
  const names = Array.from({ length: services }, (_, index) => `namespace-${Math.floor(index / 100)}/service-${index}`);
  return replaceAll({
    services: names.map((name, index) =>
      service(name, {
        clusterIps: [`10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`],
        ports: [{ name: 'http', ...(index % 10 === 0 && index < 27_670 ? { nodePort: 30000 + index / 10 } : {}) }],
      }),
    ),
    slices: names.map((name, index) => sliceOf(name, index, endpoints)),
    nodes: [node('n1', { zone: 'a', addresses: ['192.0.2.1'] })],
  });
}

function sliceOf(name: string, index: number, endpoints: number): ReturnType<typeof slice> {
  return slice(name, {
    ports: [{ name: 'http', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, at) => {
      const number = index * endpoints + at;
      return {
        ip: `10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`,
        node: nodes[number % 100] ?? '',
      };
    }),
  });
}

function heap(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

/** Median time of `rounds` runs. */
function time(rounds: number, run: (round: number) => unknown): number {
  const times = Array.from({ length: rounds }, (_, round) => {
    const start = performance.now();
    run(round);
    return performance.now() - start;
  }).sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)] ?? Number.NaN;
}

function measure(services: number, endpoints: number): readonly Row[] {
  const empty = heap();
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(bigCluster(services, endpoints));
  const withState = heap();
  let table: ForwardingTable = buildTable(state, 'all', undefined, options);
  const withTable = heap();
  const rows: Row[] = [
    { what: 'cluster state alone', milliseconds: Number.NaN, heapMegabytes: withState - empty },
    {
      what: 'full build from nothing',
      milliseconds: time(9, () => buildTable(state, 'all', undefined, options)),
      heapMegabytes: withTable - withState,
    },
    {
      what: 'full build, nothing changed (table kept)',
      milliseconds: time(9, () => buildTable(state, 'all', table, options)),
      heapMegabytes: undefined,
    },
  ];
  const names = [...state.services.keys()];
  const change = (round: number): void => {
    const index = (round * 7919) % services;
    const item = sliceOf(names[index] ?? '', index, endpoints - (round % 2));
    const dirty = state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item }]);
    const next = buildTable(state, dirtyServices(dirty), table, options);
    if (diffTables(table, next).upserted.length !== (next === table ? 0 : 1))
      throw new Error('one change is one delta');
    table = next;
  };
  const rounds = 20_000;
  time(2000, change);
  const before = heap();
  const start = performance.now();
  for (let round = 0; round < rounds; round++) change(round);
  const perChange = (performance.now() - start) / rounds;
  return [
    ...rows,
    { what: 'one change: apply + build + diff', milliseconds: perChange, heapMegabytes: heap() - before },
  ];
}

/** Standard output is what this script is for. */
function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

function print(title: string, rows: readonly Row[]): void {
  printLine(`\n${title}`);
  printLine(`${'what'.padEnd(42)}${'ms'.padStart(10)}${'ops/s'.padStart(12)}${'heap MB'.padStart(10)}`);
  for (const { what, milliseconds, heapMegabytes } of rows) {
    const isTimed = !Number.isNaN(milliseconds);
    const ms = isTimed ? milliseconds.toFixed(milliseconds < 1 ? 4 : 1) : '';
    const ops = isTimed ? Math.round(1000 / milliseconds).toLocaleString('en') : '';
    printLine(
      `${what.padEnd(42)}${ms.padStart(10)}${ops.padStart(12)}${(heapMegabytes?.toFixed(1) ?? '').padStart(10)}`,
    );
  }
}

for (const [services, endpoints] of [
  [1000, 10],
  [10_000, 10],
] as const) {
  print(`${services} Services x ${endpoints} endpoints, IPv4`, measure(services, endpoints));
}
