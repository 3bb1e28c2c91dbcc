// Losses of a rolling update behind each health-check profile: one rollout per profile, fallback off and on, and drain time, measured
// and predicted, written to docs/reference/profile-losses.md; the figures stay in packages/rollout/.test-results. Needs root.
//   --time-scale N (0.5)  --rate N (20, unscaled)  --lb process|docker  --only PROFILE (several; others keep their figures)  --out FOLDER (docs/reference)
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type MeasuredRollout, measureProfiles } from './profile-table/measure-profiles.ts';
import { type ProfileCell, profileCell } from './profile-table/profile-cell.ts';
import { type ProfileFigures, profilePage } from './profile-table/profile-page.ts';
import { profiles as allProfiles } from '../src/profiles.ts';
import { summarise } from '../src/summarise.ts';

const { values } = parseArgs({
  options: {
    'time-scale': { type: 'string', default: '0.5' },
    rate: { type: 'string', default: '20' },
    lb: { type: 'string', default: 'process' },
    only: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: fileURLToPath(new URL('../../../docs/reference', import.meta.url)) },
  },
});

/** The figures of the last run; git ignores them. */
const resultsFile = fileURLToPath(new URL('../.test-results/profile-losses.json', import.meta.url));

function report(text: string): void {
  process.stderr.write(`bench: ${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
}

function cellOf({ run, drain }: MeasuredRollout): ProfileCell {
  const cell = profileCell(
    run.settings,
    drain,
    summarise(run, () => []),
  );
  const { best, worst } = cell.predicted;
  const verdict = cell.isWithin ? '' : ' OUTSIDE';
  report(
    `  serves on ${drain} s: ${cell.lost} lost, ${cell.predictedFromEvents} by events, ${best}-${worst} predicted${verdict}`,
  );
  return cell;
}

/** Earlier figures of all profiles but these. */
function kept(measured: readonly string[]): readonly ProfileCell[] {
  if (!existsSync(resultsFile)) return [];
  const { cells } = JSON.parse(readFileSync(resultsFile, 'utf8')) as ProfileFigures;
  return cells.filter((cell) => !measured.includes(cell.profile));
}

async function main(): Promise<void> {
  const machine = `${cpus().length} cores, kernel ${release().split('-')[0]}`;
  const runtime = values.lb === 'docker' ? 'docker' : 'process';
  const [timeScale, rate] = [Number(values['time-scale']), Number(values.rate)];
  const profiles = allProfiles.filter(({ name }) => values.only.length === 0 || values.only.includes(name));
  const options = {
    labName: 'profiles',
    profiles,
    fallbacks: [false, true],
    drains: [0, 5, 30],
    rounds: 1,
    fastDrain: false,
    proxyMode: 'nftables',
    runtime,
    timeScale,
    rate,
  } as const;
  const cells: ProfileCell[] = [];
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  for await (const group of measureProfiles(options, { step: report }, stop.signal)) cells.push(...group.map(cellOf));
  const before = values.only.length === 0 ? [] : kept(profiles.map(({ name }) => name));
  const order = allProfiles.map(({ name }) => name);
  cells.push(...before);
  cells.sort((a, b) => order.indexOf(a.profile) - order.indexOf(b.profile));
  const figures = { machine, runtime, timeScale, rate, cells } as const;
  for (const folder of [dirname(resultsFile), values.out]) mkdirSync(folder, { recursive: true });
  writeFileSync(resultsFile, `${JSON.stringify(figures, null, 2)}\n`);
  report(`${cells.filter((cell) => cell.isWithin).length} of ${cells.length} within the prediction; ${resultsFile}`);
  const missing = order.filter((name) => cells.every((cell) => cell.profile !== name));
  if (missing.length > 0) return report(`no page, because figures are missing: ${missing.join(', ')}`);
  writeFileSync(join(values.out, 'profile-losses.md'), profilePage(figures));
}

await main();
