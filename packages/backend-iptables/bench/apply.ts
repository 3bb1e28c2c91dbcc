/*
 * Prints one table: what loading and changing a large table costs with our chains, and what kube-proxy's content costs the same
 * iptables, in fresh network namespaces; and whether the targets are met. Needs root. Run by `nx run backend-iptables:bench`.
 *
 *   apply.ts [--nft 1000,5000] [--legacy 5000] [--rounds 15] [--quick]
 */
import { parseArgs } from 'node:util';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { endpointsPerService } from './cluster.ts';
import { patience } from './dataplane.ts';
import { compare, type Comparison, type Figures } from './measure.ts';

const { values: options } = parseArgs({
  options: {
    nft: { type: 'string', default: '1000,5000' },
    legacy: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '15' },
    quick: { type: 'boolean', default: false },
  },
});

const sizes: Readonly<Record<IptablesVariant, readonly number[]>> = options.quick
  ? { nft: [100], legacy: [100] }
  : { nft: numbers(options.nft), legacy: numbers(options.legacy) };

function numbers(list: string): readonly number[] {
  return list.split(',').filter(Boolean).map(Number);
}

const milli = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const second = (value: number): string => `${(value / 1000).toFixed(2)} s`;
const size = (value: number): string => (value < 1000 ? `${value} B` : `${(value / 1000).toFixed(1)} kB`);
const ratio = (ours: number, theirs: number | undefined): string =>
  theirs === undefined ? '-' : `${(ours / theirs).toFixed(2)}`;

type Of = (figures: Figures) => number | undefined;

/** The lines of the table for one comparison: figure, ours, kube-proxy's content, ours / theirs. */
function linesOf({ variant, services, ours, theirs, adoption }: Comparison): readonly (readonly string[])[] {
  const line = (what: string, shown: (value: number) => string, of: Of): readonly string[] => {
    const [mine, other] = [of(ours), theirs === undefined ? undefined : of(theirs)];
    const late = `> ${patience / 1000} s`;
    return [
      `${variant}, ${services} x ${endpointsPerService}`,
      what,
      mine === undefined ? late : shown(mine),
      other === undefined ? (theirs === undefined && what.startsWith('first') ? late : '-') : shown(other),
      mine === undefined ? '-' : ratio(mine, other),
    ];
  };
  return [
    line('first load, to the answer of the last Service', second, ({ load }) => load),
    line('CPU of that', second, ({ loadCpu }) => loadCpu),
    line('one of ten endpoints: handed to iptables-restore', size, ({ bytes }) => bytes),
    line('the same in lines', String, ({ lines }) => lines),
    line('iptables-restore, start to end', milli, ({ restore }) => restore),
    line('change as a whole', milli, ({ change }) => change),
    line('CPU of a change', milli, ({ changeCpu }) => changeCpu),
    line('the only endpoint replaced: to the new answer', milli, ({ visible }) => visible),
    [`${variant}, ${services} x ${endpointsPerService}`, 'adoption at restart', second(adoption), '-', '-'],
  ];
}

type Verdict = readonly [what: string, found: string, target: string, isReached: boolean];

/** Targets of this backend on a machine with 2 cores, for the measured sizes only. */
function verdicts(all: readonly Comparison[]): readonly string[] {
  const at = (
    variant: IptablesVariant,
    services: number,
    of: (one: Comparison) => readonly Verdict[],
  ): readonly Verdict[] => all.filter((one) => one.variant === variant && one.services === services).flatMap(of);
  const load = ({ variant, services, ours }: Comparison, limit: number): Verdict => [
    `first load, ${variant}, ${services}`,
    ours.load === undefined ? 'not in time' : second(ours.load),
    `<= ${second(limit)}`,
    (ours.load ?? Number.POSITIVE_INFINITY) <= limit,
  ];
  const lines: readonly Verdict[] = [
    ...at('nft', 1000, ({ ours }) => [
      ['bytes of one change, nft, 1000', size(ours.bytes), '<= 4 kB', ours.bytes <= 4000],
      ['one change, nft, 1000, to the new answer', milli(ours.visible), '<= 40 ms', ours.visible <= 40],
    ]),
    ...at('nft', 5000, (one) => [load(one, 45_000)]),
    ...at('legacy', 5000, (one) => {
      const share = one.ours.visible / (one.theirs?.visible ?? Number.NaN);
      return [
        ["one change, legacy, 5000, share of kube-proxy's content", share.toFixed(2), '<= 0.5', share <= 0.5],
        load(one, 3500),
      ];
    }),
  ];
  return lines.map(
    ([what, found, target, isReached]) => `${isReached ? 'PASS' : 'FAIL'} ${what}: ${found} (${target})\n`,
  );
}

const text = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;

const { signal } = new AbortController();
const all: Comparison[] = [];
for (const variant of ['nft', 'legacy'] as const) {
  for (const services of sizes[variant]) {
    process.stderr.write(`${variant}, ${services} services...\n`);
    all.push(await compare(variant, services, { rounds: options.quick ? 3 : Number(options.rounds), signal }));
  }
}
const header = ['size', 'figure', 'ours', "kube-proxy's content", 'ours / theirs'];
process.stdout.write(text(header) + text(header.map(() => '---')));
for (const comparison of all) for (const line of linesOf(comparison)) process.stdout.write(text(line));
process.stdout.write(`\n${verdicts(all).join('')}\n`);
