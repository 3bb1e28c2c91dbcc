import { ConfigError, millis, messageOf } from '@switchyard/core';
import { agentModes, defaultAgentMode } from '@switchyard/lab';
import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { healthCheckOf, type Profile, type ProfileChanges, profiles } from './profiles.ts';
import type { RunSettings } from './run-record.ts';

export interface DemoConfig {
  readonly fallbacks: readonly ('off' | 'on')[];
  readonly settings: Omit<RunSettings, 'terminatingFallback'>;
  readonly jsonFile: string | undefined;
  readonly reportFile: string;
}

/** The names on two lines, indented for the usage text. */
function profileNames(): string {
  const names = profiles.map(({ name }) => name);
  const half = Math.ceil(names.length / 2);
  return [names.slice(0, half), names.slice(half)].map((line) => line.join(', ')).join(`,\n${' '.repeat(29)}`);
}

/** Shown by `--help`. */
export const usage: string = `usage: ./dev demo [OPTIONS]

A rolling update of an externalTrafficPolicy: Local Service behind a real HAProxy, on a real kernel,
without and with the terminating fallback. Takes about 2 minutes; needs root.

  --time-scale N             all durations times N (default 1; 0.1 for a quick look)
  --rate N                   requests per second of the open loop (default 20)
  --fallback off|on|both     which runs (default both)
  --proxy-mode MODE          the agents' mode: nftables (default), iptables or ebpf
  --delay-shutdown SECONDS   how long the app serves on after SIGTERM (default 30)
  --health-check-profile P   the load balancer's health checks (default cloud-provider-kind); one of
                             ${profileNames()}
  --health-check-interval S  seconds between two checks of HAProxy (default: the profile's)
  --health-check-fall N      failures that take a node out (default: the profile's)
  --health-check-rise N      successes that put it back (default: the profile's)
  --fast-drain               the load balancer takes a node out as soon as an EndpointSlice says so
  --lb process|docker        where the load balancer runs: HAProxy as a process (default), or a container
                             of a Docker Engine that the demo starts in the lab (docs/operate/kind.md)
  --report FILE              the report (default demo-report.html)
  --json FILE                the same as data
`;

const options = {
  'time-scale': { type: 'string', default: '1' },
  rate: { type: 'string', default: '20' },
  fallback: { type: 'string', default: 'both' },
  'proxy-mode': { type: 'string', default: defaultAgentMode },
  'delay-shutdown': { type: 'string', default: '30' },
  'health-check-profile': { type: 'string', default: 'cloud-provider-kind' },
  'health-check-interval': { type: 'string' },
  'health-check-fall': { type: 'string' },
  'health-check-rise': { type: 'string' },
  'fast-drain': { type: 'boolean', default: false },
  lb: { type: 'string', default: 'process' },
  report: { type: 'string', default: 'demo-report.html' },
  json: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** The configuration, or `help`. Throws `ConfigError` naming the flag. */
export function readConfig(args: readonly string[]): DemoConfig | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const number = (flag: keyof typeof options, min: number, max: number): number => {
    const text = String(values[flag]);
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= min && value <= max)) {
      const what = `--${flag} must be a number from ${min} to ${max}, not ${JSON.stringify(text)}`;
      throw new ConfigError('demo.flag', what);
    }
    return value;
  };
  const count = (flag: 'health-check-fall' | 'health-check-rise'): number => {
    const value = number(flag, 1, 10);
    if (Number.isInteger(value)) return value;
    throw new ConfigError('demo.flag', `--${flag} must be a whole number, not ${value}`);
  };
  const { 'health-check-interval': interval, 'health-check-fall': fall, 'health-check-rise': rise } = values;
  const changes: ProfileChanges = {
    ...(interval === undefined ? {} : { interval: millis(1000 * number('health-check-interval', 0.1, 60)) }),
    ...(fall === undefined ? {} : { fall: count('health-check-fall') }),
    ...(rise === undefined ? {} : { rise: count('health-check-rise') }),
  };
  const timeScale = number('time-scale', 0.02, 1);
  const fallback = oneOf(values.fallback, ['off', 'on', 'both'], 'fallback', '--fallback must be off, on or both');
  return {
    fallbacks: fallback === 'both' ? ['off', 'on'] : [fallback],
    settings: {
      proxyMode: oneOf(
        values['proxy-mode'],
        agentModes,
        'proxyMode',
        `--proxy-mode must be one of ${agentModes.join(', ')}`,
      ),
      rate: number('rate', 1, 1000),
      requestTimeout: millis(500),
      healthCheck: healthCheckOf(profileNamed(values['health-check-profile']), changes, timeScale),
      fastDrain: values['fast-drain'],
      runtime: oneOf(values.lb, ['process', 'docker'], 'lb', '--lb must be process or docker'),
      delayShutdown: millis(number('delay-shutdown', 0, 300) * 1000 * timeScale),
      timeScale,
    },
    jsonFile: values.json,
    reportFile: values.report,
  };
}

type Values = ReturnType<
  typeof parseArgs<{ options: typeof options; strict: true; allowPositionals: false }>
>['values'];

function parse(args: readonly string[]): Values {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const text = (error as Error).message.replaceAll(/\.?\s*\n\s*/g, '. ');
    throw new ConfigError('demo.usage', `${text}; ./dev demo --help lists the options`, { cause: error });
  }
}

/** Throws `ConfigError` that begins with `must` unless the text is one of these. */
function oneOf<T extends string>(text: string, allowed: readonly T[], code: string, must: string): T {
  const found = allowed.find((one) => one === text);
  if (found !== undefined) return found;
  throw new ConfigError(`demo.${code}`, `${must}, not ${JSON.stringify(text)}`);
}

function profileNamed(name: string): Profile {
  const names = profiles.map((profile) => profile.name);
  const found = oneOf(name, names, 'profile', `--health-check-profile must be one of ${names.join(', ')}`);
  return profiles[names.indexOf(found)] as Profile;
}

/** Checks before a long run that its result can be written. Throws `ConfigError` with this code. */
export function checkWritable(file: string, code: string): void {
  const isNew = !existsSync(file);
  try {
    closeSync(openSync(file, 'a'));
    if (isNew) rmSync(file);
  } catch (cause) {
    throw new ConfigError(code, `cannot write ${resolve(file)}: ${messageOf(cause)}`, { cause });
  }
}
