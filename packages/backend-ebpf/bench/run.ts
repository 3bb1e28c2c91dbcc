/*
 * Prints one table: what connections cost through the eBPF backend beside direct ones, nftables and iptables; what programming the
 * kernel costs; whether swaps are ever seen half; and whether the targets are met. Everything happens in network namespaces and cgroups
 * of its own. Needs root. Run by `nx run backend-ebpf:bench`.
 *
 *   run.ts [--services 10000] [--rounds 15] [--swaps 1000000] [--quick]
 */
import { parseArgs } from 'node:util';
import { measureBackend } from './backends.ts';
import { type ConnectFigures, measureConnects } from './connect.ts';
import { Machine } from './machine.ts';
import type { Row } from './measure-backend.ts';
import { measurePrograms } from './program-cost.ts';
import { type SwapFigures, swapAgainstConnects } from './swaps.ts';

const { values: options } = parseArgs({
  options: {
    services: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '15' },
    swaps: { type: 'string', default: '1000000' },
    quick: { type: 'boolean', default: false },
  },
});
const services = options.quick ? 1000 : Number(options.services);
const sizes = options.quick ? [1000] : [1000, 10_000, 30_000];
const { signal } = new AbortController();

const text = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
const micro = (value: number): string => `${value.toFixed(1)} µs`;
const milli = (value: number): string => `${value.toFixed(0)} ms`;
const mega = (value: number): string => `${value.toFixed(1)} MB`;

function tell(what: string): void {
  process.stderr.write(`${what}...\n`);
}

function connectLines(all: readonly ConnectFigures[]): string {
  return all
    .map(({ what, baseline, median, least, ratio }) =>
      text(`connect(), ${what}`, `${micro(median)}, least ${micro(least)}`, `${ratio.toFixed(2)} x ${baseline}`),
    )
    .join('');
}

function rowLines({ kind, services: size, load, loadCpu, p50, p99, cpu, rss }: Row): string {
  const name = { writer: 'maps and socket programs alone', ebpf: 'eBPF backend', nftables: 'nftables backend' }[kind];
  const what = `${name}, ${size} x 10`;
  return [
    text(`${what}: from the table to attached`, milli(load), `CPU ${milli(loadCpu)}`),
    text(`${what}: one endpoint change, p50`, micro(p50 * 1000), `p99 ${micro(p99 * 1000)}, CPU ${micro(cpu * 1000)}`),
    text(`${what}: resident memory`, mega(rss), '-'),
  ].join('');
}

type Verdict = readonly [what: string, found: string, target: string, isReached: boolean];

function verdicts(connects: readonly ConnectFigures[], rows: readonly Row[], swaps: SwapFigures): readonly Verdict[] {
  const way = (what: string): ConnectFigures => connects.find((one) => one.what === what) as ConnectFigures;
  const alone = way('cluster IP, socket programs alone');
  const whole = way('cluster IP, ebpf (tc)');
  const others = [way('cluster IP, nftables'), way('cluster IP, iptables')].map(({ median }) => median);
  const ebpf = rows.filter(({ kind }) => kind === 'ebpf');
  const slowest = Math.max(...ebpf.map(({ p50 }) => p50)) * 1000;
  const of = (kind: Row['kind']): Row | undefined => rows.find((row) => row.kind === kind && row.services === services);
  const more = (of('ebpf')?.rss ?? Number.NaN) - (of('nftables')?.rss ?? Number.NaN);
  const load = of('writer')?.load ?? Number.NaN;
  return [
    ['cluster IP through the socket programs / direct', alone.ratio.toFixed(2), '<= 1.10', alone.ratio <= 1.1],
    [
      'cluster IP through the whole backend / direct on that node',
      whole.ratio.toFixed(2),
      '<= 1.10',
      whole.ratio <= 1.1,
    ],
    [
      'the same below nftables and iptables',
      micro(alone.median),
      `< ${micro(Math.min(...others))}`,
      others.every((other) => alone.median < other),
    ],
    ['one endpoint change at any size, p50', micro(slowest), '<= 50 µs', slowest <= 50],
    [`from the table to attached socket programs, ${services} x 10`, milli(load), '<= 200 ms', load <= 200],
    [`memory beyond that of the nftables backend, ${services} x 10`, mega(more), '<= 15 MB', more <= 15],
    [
      `wrong endpoints and errors in ${swaps.swaps} swaps against ${swaps.connects} connects`,
      String(swaps.wrong + swaps.errors),
      '0',
      swaps.wrong + swaps.errors === 0,
    ],
  ];
}

using machine = new Machine();
tell('connections');
const connects = await measureConnects(
  machine.connections,
  services,
  options.quick ? 3 : Number(options.rounds),
  signal,
);
const rows: Row[] = [];
for (const size of sizes) {
  for (const kind of ['writer', 'ebpf', 'nftables'] as const) {
    tell(`${kind}, ${size} services`);
    rows.push(measureBackend(machine, kind, size));
  }
}
tell('programs');
const programs = await measurePrograms(machine, services, signal);
tell('swaps');
const swaps = await swapAgainstConnects(machine, options.quick ? 20_000 : Number(options.swaps), signal);

process.stdout.write(text('figure', 'found', 'beside') + text('---', '---', '---'));
process.stdout.write(connectLines(connects) + rows.map(rowLines).join(''));
for (const { what, nanoseconds } of programs)
  process.stdout.write(text(`${what}, by the kernel's counters`, `${nanoseconds.toFixed(0)} ns`, '-'));
process.stdout.write(
  text(
    `one swap of up to ten endpoints, beside ${swaps.connects} connects`,
    micro(swaps.swapTime),
    `${swaps.wrong} wrong`,
  ),
);
process.stdout.write('\n');
for (const [what, found, target, isReached] of verdicts(connects, rows, swaps)) {
  process.stdout.write(`${isReached ? 'PASS' : 'FAIL'} ${what}: ${found} (${target})\n`);
}
