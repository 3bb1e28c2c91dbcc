// Rollouts behind a load balancer that checks often: does it ever hold no node UP while the pod moves to another node? 20 rollouts each behind our
// profile, which must lose nothing, and behind faithful `2 s x 1` checks, which must show that the hole is there to be closed. Needs root.
//   --rounds N (5, of 4 apps each)  --time-scale N (1)  --drain SECONDS (5)  --profile NAME  --fast-drain  --lb process|docker  --ours-only
import { parseArgs } from 'node:util';
import { millis } from '@switchyard/core';
import { textTable } from '../src/report/report-html.ts';
import { measureProfiles } from './profile-table/measure-profiles.ts';
import { type Profile, profiles as allProfiles } from '../src/profiles.ts';
import { summarise } from '../src/summarise.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    'time-scale': { type: 'string', default: '1' },
    drain: { type: 'string', default: '5' },
    profile: { type: 'string', default: 'switchyard' },
    'fast-drain': { type: 'boolean', default: false },
    'ours-only': { type: 'boolean', default: false },
    lb: { type: 'string', default: 'process' },
  },
});
const appsPerRound = 4;

function named(name: string): Profile {
  const all = allProfiles;
  const found = all.find((profile) => profile.name === name);
  if (found !== undefined) return found;
  throw new Error(`no profile is called ${name}; there are ${all.map((profile) => profile.name).join(', ')}`);
}

/** The measured load balancer whose hole it is. */
function faithful(): Profile {
  return { ...named('cloud-provider-kind'), interval: millis(2000), downInterval: millis(2000), fall: 1 };
}

async function main(): Promise<void> {
  const profiles = [named(values.profile), ...(values['ours-only'] ? [] : [faithful()])];
  const options = {
    labName: 'nohole',
    profiles,
    fallbacks: [true],
    drains: Array.from({ length: appsPerRound }, () => Number(values.drain)),
    rounds: Number(values.rounds),
    fastDrain: values['fast-drain'],
    proxyMode: 'nftables',
    runtime: values.lb === 'docker' ? 'docker' : 'process',
    timeScale: Number(values['time-scale']),
    rate: 20,
  } as const;
  const lost = new Map<Profile, number[]>(profiles.map((profile) => [profile, []]));
  const step = (text: string): void => void process.stderr.write(`bench: ${text}\n`);
  for await (const group of measureProfiles(options, { step }, new AbortController().signal)) {
    for (const { profile, run } of group) {
      const summary = summarise(run, () => []);
      lost.get(profile)?.push(summary.lost);
      step(`lost ${summary.lost} of ${summary.requests} ${JSON.stringify(summary.lostByCause)}`);
    }
  }
  const rows = [...lost].map(([{ name, interval, fall, whenNoneUp }, each]) => [
    `${name}, ${interval / 1000} s x ${fall}${whenNoneUp === 'lastUp' ? ', those UP last are used' : ''}`,
    String(each.length),
    String(each.filter((count) => count > 0).length),
    String(each.reduce((sum, count) => sum + count, 0)),
    each.join(' '),
  ]);
  console.log(textTable([['profile', 'rollouts', 'with a loss', 'lost', 'in each'], ...rows]));
  if (lost.get(profiles[0] as Profile)?.some((count) => count > 0) === true) process.exitCode = 1;
}

await main();
