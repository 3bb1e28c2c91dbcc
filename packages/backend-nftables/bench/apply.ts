/* Prints one table: what writing, changing and adopting a large table costs. Needs root. Run by `nx run backend-nftables:bench`. */
import { type ForwardingTable, noopLogger } from '@switchyard/core';
import { createLab, type LabHost } from '@switchyard/lab';
import { nftablesBackend } from '../src/index.ts';
import { situation, there } from '../src/testing/situations.ts';

const { signal } = new AbortController();
const changes = 20;

const octets = (first: number, index: number): string =>
  `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

/** Services of ten endpoints; the first has `extra` more. */
function cluster(services: number, extra = 0): ForwardingTable {
  const spec = (index: number): readonly [string, { clusterIps: string[]; endpoints: ReturnType<typeof there>[] }] => {
    const count = 10 + (index === 0 ? extra : 0);
    const endpoints = Array.from({ length: count }, (_, at) => there(octets(11, index * 16 + at)));
    return [`s${index}`, { clusterIps: [octets(10, index)], endpoints }];
  };
  return situation(Object.fromEntries(Array.from({ length: services }, (_, index) => spec(index))));
}

function heap(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function measure(services: number, host: LabHost): Promise<Record<string, string>> {
  const runner = {
    run: (file: string, args: readonly string[], options: { readonly stdin?: string }) =>
      host.run(file, args, options.stdin === undefined ? {} : { stdin: options.stdin }),
  };
  const open = (): ReturnType<typeof nftablesBackend.open> =>
    nftablesBackend.open({ runner, transport: 'cli', logger: noopLogger }, 'IPv4', signal);
  const [table, oneMore] = [cluster(services), cluster(services, 1)];
  const backend = await open();
  await backend.cleanup(signal);
  const before = heap();
  const load = await time(() => backend.apply({ table, scope: { kind: 'full' } }, signal));
  const grown = heap() - before;
  const times: number[] = [];
  for (let round = 0; round < changes; round++) {
    const next = round % 2 === 0 ? oneMore : table;
    const upserted = [...next.services.values()].slice(0, 1);
    const delta = { upserted, removed: [], settingsChanged: false };
    times.push(await time(() => backend.apply({ table: next, scope: { kind: 'delta', delta } }, signal)));
  }
  const restarted = await open();
  const adoption = await time(() => restarted.apply({ table, scope: { kind: 'full' } }, signal));
  times.sort((a, b) => a - b);
  return {
    services: `${services} x 10`,
    'first load, ms': load.toFixed(0),
    'one endpoint p50 / max, ms': `${times[changes / 2]?.toFixed(1)} / ${times.at(-1)?.toFixed(1)}`,
    'adoption, ms': adoption.toFixed(0),
    'heap, MB': grown.toFixed(1),
  };
}

const lab = await createLab({ name: 'nftb', nodes: 1, ipFamilies: ['IPv4'] }, signal);
try {
  const rows: Record<string, string>[] = [];
  for (const services of [100, 1000, 5000]) rows.push(await measure(services, lab.hosts.at(-1) ?? lab.client));
  process.stdout.write(`${Object.keys(rows[0] ?? {}).join(' | ')}\n`);
  for (const row of rows) process.stdout.write(`${Object.values(row).join(' | ')}\n`);
} finally {
  await lab[Symbol.asyncDispose]();
}
