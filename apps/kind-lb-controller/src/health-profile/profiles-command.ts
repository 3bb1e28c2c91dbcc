import { parseArgs } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';
import { takenOutAfter } from '@switchyard/loss';
import { healthProfiles } from './health-profiles.ts';

/**
 * `switchyard-lb profiles [--output json]`: the health-check profiles that there are, as lines for people or as a JSON array of them,
 * durations in milliseconds. `args` are those after `profiles`. Throws `ConfigError` for wrong flags.
 */
export function profilesCommand(args: readonly string[]): string {
  const output = outputOf(args);
  if (output === 'help') return usage;
  const profiles = Object.values(healthProfiles);
  if (output === 'json') return `${JSON.stringify(profiles, null, 2)}\n`;
  const width = Math.max(...profiles.map(({ name }) => name.length));
  return profiles
    .map((profile) => {
      const { name, interval, fall, rise } = profile;
      const timing = `every ${interval / 1000} s, out after ${fall}, in after ${rise}; notices within`;
      return `${name.padEnd(width)}  ${timing} ${takenOutAfter(profile).longest / 1000} s\n`;
    })
    .join('');
}

const usage = `Usage: switchyard-lb profiles [--output text|json]

The health-check profiles there are, for --health-check-profile and the annotation lb.switchyard.dev/health-check-profile.
`;

const options = { output: { type: 'string', short: 'o' }, help: { type: 'boolean', short: 'h' } } as const;

function outputOf(args: readonly string[]): 'help' | 'json' | 'text' {
  let values: { readonly output?: string; readonly help?: boolean };
  try {
    ({ values } = parseArgs({ args: [...args], options }));
  } catch (cause) {
    throw new ConfigError('profiles.flags', `profiles: ${messageOf(cause)}`, { cause });
  }
  if (values.help === true) return 'help';
  const { output } = values;
  if (output === undefined || output === 'text') return 'text';
  if (output === 'json') return 'json';
  throw new ConfigError('profiles.flags', `profiles: --output must be text or json, not ${JSON.stringify(output)}`);
}
