/*
 * Prints one table: what writing, changing and adopting a large table costs, over each transport. The nft program is the
 * baseline. Needs root. Run by `nx run backend-nftables:bench`.
 */
import { fileURLToPath } from 'node:url';
import { seconds } from '@switchyard/core';
import { createLab, type LabHost } from '@switchyard/lab';
import { endpointsPerService } from './cluster.ts';
import type { Row } from './measure-row.ts';

const { signal } = new AbortController();
const sizes = { netlink: [1000, 5000, 10_000, 30_000], cli: [1000, 5000] } as const;

async function measure(host: LabHost, transport: Row['transport'], services: number): Promise<Row> {
  process.stderr.write(`${transport}, ${services} services...\n`);
  const script = fileURLToPath(new URL('measure-row.ts', import.meta.url));
  const args = ['--conditions=@switchyard/source', '--expose-gc', script, transport, String(services)];
  const result = await host.run(process.execPath, args, { timeout: seconds(60) });
  if (result.exitCode !== 0) throw new Error(`${transport} at ${services} services: ${result.stderr}`);
  return JSON.parse(result.stdout) as Row; // printed by our own program
}

const micro = (value: number): string => `${(value * 1000).toFixed(0)} µs`;
const milli = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const fine = (value: number): string => (value < 1 ? micro(value) : milli(value));

function cells(row: Row, baseline: Row | undefined): Record<string, string> {
  return {
    transport: row.transport,
    services: `${row.services} x ${endpointsPerService}`,
    'first load (longest stall)': `${milli(row.load)} (${milli(row.stall)})`,
    'one endpoint, apply() p50 / p99 / max': `${fine(row.p50)} / ${fine(row.p99)} / ${fine(row.max)}`,
    changes: String(row.changes),
    'agent CPU per change': fine(row.cpu),
    'p50 of cli to this': baseline === undefined ? '' : `${(baseline.p50 / row.p50).toFixed(0)} x`,
    adoption: milli(row.adoption),
    'heap of the backend': `${row.heap.toFixed(1)} MB`,
    RSS: `${row.rss.toFixed(0)} MB`,
  };
}

const line = (values: readonly string[]): string => `| ${values.join(' | ')} |\n`;

const lab = await createLab({ name: 'nftb', nodes: 1, ipFamilies: ['IPv4'] }, signal);
try {
  const host = lab.hosts.at(-1) ?? lab.client;
  const rows: Row[] = [];
  for (const transport of ['cli', 'netlink'] as const) {
    for (const services of sizes[transport]) rows.push(await measure(host, transport, services));
  }
  const table = rows.map((row) =>
    cells(
      row,
      rows.find(({ transport, services }) => transport === 'cli' && services === row.services),
    ),
  );
  const header = Object.keys(table[0] ?? {});
  process.stdout.write(line(header) + line(header.map(() => '---')));
  for (const row of table) process.stdout.write(line(Object.values(row)));
} finally {
  await lab[Symbol.asyncDispose]();
}
