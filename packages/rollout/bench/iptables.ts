// The agent's figures in iptables mode, measured as those of endpoint-change.ts are.
//   iptables.ts [--nft 1000,5000] [--legacy 5000] [--changes 200] [--quick]
import { parseArgs } from 'node:util';
import { textTable } from '../src/report/report-html.ts';
import { createFillers, endpointsPerService } from './big-cluster.ts';
import { iptablesTable, type Variant } from './iptables-targets.ts';
import { Measurement, type Rounds, type SizeFigures } from './measure.ts';
import { iptables } from './modes.ts';
import { createBenchLab } from './bench-lab.ts';

const { values: options } = parseArgs({
  options: {
    nft: { type: 'string', default: '1000,5000' },
    legacy: { type: 'string', default: '5000' },
    changes: { type: 'string', default: '200' },
    quick: { type: 'boolean', default: false },
  },
});

const sizes: Readonly<Record<Variant, readonly number[]>> = options.quick
  ? { nft: [100], legacy: [100] }
  : { nft: numbers(options.nft), legacy: numbers(options.legacy) };

function numbers(list: string): readonly number[] {
  return list.split(',').filter(Boolean).map(Number);
}

function roundsOf(variant: Variant, services: number): Rounds {
  const isSlow = services > 1000;
  const changes = options.quick ? 20 : isSlow && variant === 'legacy' ? 30 : Number(options.changes);
  return { coldStarts: isSlow ? 2 : 3, adoptions: isSlow ? 2 : 3, changes, bursts: 0, idleTime: 0 };
}

async function measure(variant: Variant, services: number, signal: AbortSignal): Promise<SizeFigures> {
  process.stderr.write(`bench: ${variant}, ${services} services\n`);
  await using benchLab = await createBenchLab(signal);
  await createFillers(benchLab.api, { services }, signal);
  const measurement = await Measurement.begin(benchLab, iptables[variant], signal);
  return await measurement.run(services, roundsOf(variant, services), signal); // keeps the lab until then
}

const { signal } = new AbortController();
const measured: { readonly variant: Variant; readonly size: SizeFigures }[] = [];
for (const variant of ['nft', 'legacy'] as const) {
  for (const services of sizes[variant]) measured.push({ variant, size: await measure(variant, services, signal) });
}
console.log(textTable(iptablesTable(measured, endpointsPerService)));
for (const { variant, size } of measured) {
  const { coldStarts, syncs, adoptions, changes } = size;
  const lists = Object.entries({ 'cold starts': coldStarts, 'in sync after': syncs, adoptions });
  const texts = lists.map(([name, samples]) => `${name} ${samples.map((sample) => sample.toFixed(0)).join(' ')}`);
  console.log(`${variant}, ${size.services}: ${changes.length} changes; ${texts.join('; ')} (ms)`);
}
