import { parseArgs } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';
import { detectionTime, healthProfiles } from './health-profiles.ts';

/**
 * `switchyard-lb profiles [--output json]`: the health-check profiles that there are, as lines for people or as a JSON array of them,
 * durations in milliseconds. `args` are those after `profiles`. Throws `ConfigError` for wrong flags.
 */
export function profilesCommand(args: readonly string[]): string {
  const output = outputOf(args);
  const profiles = Object.values(healthProfiles);
  if (output === 'json') return `${JSON.stringify(profiles, null, 2)}\n`;
  const width = Math.max(...profiles.map(({ name }) => name.length));
  return profiles
    .map((profile) => {
      const { name, interval, fall, rise } = profile;
      const timing = `every ${interval / 1000} s, out after ${fall}, in after ${rise}; notices within`;
      return `${name.padEnd(width)}  ${timing} ${detectionTime(profile) / 1000} s\n`;
    })
    .join('');
}

function outputOf(args: readonly string[]): 'json' | 'text' {
  let output: string | undefined;
  try {
    output = parseArgs({ args: [...args], options: { output: { type: 'string', short: 'o' } } }).values.output;
  } catch (cause) {
    throw new ConfigError('profiles.flags', `profiles: ${messageOf(cause)}`, { cause });
  }
  if (output === undefined || output === 'text') return 'text';
  if (output === 'json') return 'json';
  throw new ConfigError('profiles.flags', `profiles: --output must be text or json, not ${JSON.stringify(output)}`);
}
