/**
 * Cost of looking for drift, and time until it is healed: for a number of Services of ten endpoints, the share of a CPU
 * while nothing happens, and milliseconds from the end of each damage to the end of the apply that heals it.
 *
 *   node --conditions=@switchyard/source bench/drift.ts SERVICES ROUNDS
 */
import { setTimeout } from 'node:timers/promises';
import { createLab } from '@switchyard/lab';
import { type Damage, damages, driftCluster, DriftRun } from '../test/privileged/drift-run.ts';

const [services = '10000', rounds = '20', ...only] = process.argv.slice(2);
const { signal } = new AbortController();
await using lab = await createLab({ name: 'ebdriftb', nodes: 1, ipFamilies: ['IPv4'] }, signal);
const [node] = lab.nodes;
if (node === undefined) throw new Error('a node is missing');
await using run = await DriftRun.start(lab, node, driftCluster(Number(services), 10));

await setTimeout(5000);
const before = process.cpuUsage();
const start = performance.now();
await setTimeout(20_000);
const { user, system } = process.cpuUsage(before);
const share = (user + system) / 10 / (performance.now() - start);
process.stdout.write(`${JSON.stringify({ services, cpuPercent: Math.round(share * 100) / 100 })}\n`);

for (const name of Object.keys(damages) as Damage[]) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
  const times: number[] = [];
  for (let round = 0; round < Number(rounds); round++) {
    await setTimeout(Math.floor((round * 250) / Number(rounds))); // so that rounds meet looks at different moments
    times.push(Math.round(await run.heal(name)));
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  process.stdout.write(`${JSON.stringify({ services, damage: name, median, worst: times.at(-1) })}\n`);
}
