/*
 * Prints one table: what writing, changing and adopting a large table costs, and whether the targets are met. Needs root. Run by
 * `nx run backend-nftables:bench`.
 *
 * The clock of a shared machine changes by a factor of two from one second to the next. So there are several
 * rounds over all sizes, and for each size the round with the least p50 is shown: noise only adds.
 */
import { fileURLToPath } from 'node:url';
import { seconds } from '@switchyard/core';
import { createLab, type LabHost } from '@switchyard/lab';
import { endpointsPerService } from './cluster.ts';
import type { Row } from './measure-row.ts';

const { signal } = new AbortController();
const sizes = [1000, 5000, 10_000, 30_000];
const rounds = 3;

async function measure(host: LabHost, services: number): Promise<Row> {
  process.stderr.write(`${services} services...\n`);
  const script = fileURLToPath(new URL('measure-row.ts', import.meta.url));
  const args = ['--conditions=@switchyard/source', '--expose-gc', script, String(services)];
  const result = await host.run(process.execPath, args, { timeout: seconds(60) });
  if (result.exitCode !== 0) throw new Error(`${services} services: ${result.stderr}`);
  return JSON.parse(result.stdout) as Row; // printed by our own program
}

const micro = (value: number): string => `${(value * 1000).toFixed(0)} µs`;
const milli = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const fine = (value: number): string => (value < 1 ? micro(value) : milli(value));

function cells(row: Row): Record<string, string> {
  return {
    services: `${row.services} x ${endpointsPerService}`,
    'first load (longest stall)': `${milli(row.load)} (${milli(row.stall)})`,
    'one endpoint, apply() p50 / p99 / max': `${fine(row.p50)} / ${fine(row.p99)} / ${fine(row.max)}`,
    changes: String(row.changes),
    'agent CPU per change': fine(row.cpu),
    adoption: milli(row.adoption),
    'heap of the backend': `${row.heap.toFixed(1)} MB`,
    RSS: `${row.rss.toFixed(0)} MB`,
  };
}

async function measureAll(host: LabHost): Promise<readonly Row[]> {
  const least = new Map<number, Row>();
  for (let round = 0; round < rounds; round++) {
    for (const services of sizes) {
      const row = await measure(host, services);
      const known = least.get(services);
      if (known === undefined || row.p50 < known.p50) least.set(services, row);
    }
  }
  return [...least.values()];
}

/** Goals of the nftables backend on a machine with 2 cores. */
function verdicts(rows: readonly Row[]): readonly string[] {
  const of = (services: number): Row => {
    const row = rows.find((one) => one.services === services);
    if (row === undefined) throw new Error(`${services} services were not measured`);
    return row;
  };
  const ratio = of(30_000).p50 / of(1000).p50;
  const lines: readonly (readonly [what: string, found: string, target: string, isReached: boolean])[] = [
    ['p50 at 10,000', fine(of(10_000).p50), '<= 100 µs', of(10_000).p50 <= 0.1],
    ['p50 at 30,000 / p50 at 1,000', ratio.toFixed(2), '<= 1.5', ratio <= 1.5],
    ['first load of 10,000', milli(of(10_000).load), '<= 1000 ms', of(10_000).load <= 1000],
  ];
  return lines.map(
    ([what, found, target, isReached]) => `${isReached ? 'PASS' : 'FAIL'} ${what}: ${found} (${target})\n`,
  );
}

const line = (values: readonly string[]): string => `| ${values.join(' | ')} |\n`;

const lab = await createLab({ name: 'nftb', nodes: 1, ipFamilies: ['IPv4'] }, signal);
try {
  const host = lab.hosts.at(-1) ?? lab.client;
  const rows = await measureAll(host);
  const table = rows.map(cells);
  const header = Object.keys(table[0] ?? {});
  process.stdout.write(line(header) + line(header.map(() => '---')));
  for (const row of table) process.stdout.write(line(Object.values(row)));
  process.stdout.write(`\n${verdicts(rows).join('')}\n`);
} finally {
  await lab[Symbol.asyncDispose]();
}
