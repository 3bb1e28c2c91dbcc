/*
 * Prints how long endpoint changes of other Services wait while one large Service changes: 5,000 ports, 50 slices of 100
 * ports, written within 4 s. The first line is the same without the large Service. Needs root. Run by
 * `nx run backend-nftables:bench-large-service`; `--endpoints N` for slices of other than one endpoint.
 */
import { fileURLToPath } from 'node:url';
import { seconds } from '@switchyard/core';
import { createLab } from '@switchyard/lab';
import type { LargeServiceRow } from './measure-large-service.ts';

const { signal } = new AbortController();
const at = process.argv.indexOf('--endpoints');
const endpoints = at < 0 ? [1, 20] : [Number(process.argv[at + 1])];
const script = fileURLToPath(new URL('measure-large-service.ts', import.meta.url));

await using lab = await createLab({ name: 'nftlarge', nodes: 1, ipFamilies: ['IPv4'] }, signal);
const host = lab.hosts.at(-1) ?? lab.client;
process.stdout.write(
  '| large Service | changes of others | delay p50 / p99 / max | longest stall | its last slice applied after |\n',
);
process.stdout.write('|---|---|---|---|---|\n');
for (const count of [0, ...endpoints]) {
  const args = ['--conditions=@switchyard/source', script, String(count)];
  const result = await host.run(process.execPath, args, { timeout: seconds(120) });
  if (result.exitCode !== 0) throw new Error(`${count} endpoints: ${result.stderr}`);
  const { changes, p50, p99, max, stall, settled } = JSON.parse(result.stdout) as LargeServiceRow; // our own program's
  const what = count === 0 ? 'none' : `5,000 ports x ${count}`;
  const times = [p50, p99, max].map((time) => `${time.toFixed(1)} ms`).join(' / ');
  process.stdout.write(`| ${what} | ${changes} | ${times} | ${stall.toFixed(0)} ms | ${settled.toFixed(0)} ms |\n`);
}
