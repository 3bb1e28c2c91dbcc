// The agent's figures: the real agent as shipped, a real kernel and real connections in a lab, whose API server runs in
// a process of its own. A change is timed from the API server's acknowledgement of the EndpointSlice write to the first
// connection that lands at the new endpoint. Sizes are arguments: node endpoint-change.ts 1000 5000
import { createFillers, endpointsPerService } from './big-cluster.ts';
import { Measurement, type Rounds, type SizeFigures } from './measure.ts';
import { nftables } from './modes.ts';
import { percentile } from './percentile.ts';
import { createBenchLab } from './bench-lab.ts';
import { verdictTable } from './targets.ts';
import { textTable } from '../src/report/report-html.ts';

const defaultSizes = [0, 1000, 5000, 10_000];

function roundsOf(services: number): Rounds {
  return { coldStarts: 3, adoptions: 3, changes: 1000, bursts: services === 5000 ? 5 : 0, idleTime: 60_000 };
}

async function measure(services: number, signal: AbortSignal): Promise<SizeFigures> {
  const start = performance.now();
  progress(`${services} services: filling the API server`);
  await using benchLab = await createBenchLab(signal);
  await createFillers(benchLab.api, { services }, signal);
  progress(`${services} services: measuring`);
  const measurement = await Measurement.begin(benchLab, nftables, signal);
  const figures = await measurement.run(services, roundsOf(services), signal);
  progress(`${services} services: done in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  return figures;
}

function progress(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}

function ms(value: number): string {
  return value.toFixed(1);
}

async function main(): Promise<void> {
  const asked = process.argv.slice(2).map(Number);
  const sizes: SizeFigures[] = [];
  for (const services of asked.length > 0 ? asked : defaultSizes) {
    sizes.push(await measure(services, new AbortController().signal));
  }
  console.log(textTable(verdictTable(sizes, endpointsPerService)));
  for (const { services, changes, coldStarts, syncs, adoptions, bursts, apiServerCpuPerChange } of sizes) {
    const shares = [0.1, 0.5, 0.9, 0.95, 0.99, 1].map((share) => `${share * 100} % ${ms(percentile(changes, share))}`);
    console.log(`${services}: ${changes.length} changes, ms: ${shares.join(', ')}`);
    const all = { 'cold starts': coldStarts, 'in sync after': syncs, adoptions, bursts };
    const lists = Object.entries(all).map(([name, samples]) => `${name} ${samples.map(ms).join(' ') || '-'}`);
    console.log(`${services}: ${lists.join('; ')}; CPU of the API server per change ${ms(apiServerCpuPerChange)}`);
  }
}

await main();
