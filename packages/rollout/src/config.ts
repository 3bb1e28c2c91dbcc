import { parseArgs } from 'node:util';
import { ConfigError, millis } from '@switchyard/core';
import type { RunSettings } from './run-record.ts';

/** What the demo does. */
export interface DemoConfig {
  readonly fallbacks: readonly ('off' | 'on')[];
  readonly settings: Omit<RunSettings, 'terminatingFallback'>;
  readonly jsonFile: string | undefined;
  readonly reportFile: string;
}

/** Shown by `--help`. */
export const usage = `usage: ./dev demo [OPTIONS]

A rolling update of an externalTrafficPolicy: Local Service behind a real HAProxy, on a real kernel,
without and with the terminating fallback. Takes about 2 minutes; needs root.

  --time-scale N             all durations times N (default 1; 0.1 for a quick look)
  --rate N                   requests per second of the open loop (default 20)
  --fallback off|on|both     which runs (default both)
  --proxy-mode MODE          the agents' mode: nftables (default) or iptables
  --delay-shutdown SECONDS   how long the app serves on after SIGTERM (default 30)
  --health-check-interval S  seconds between two checks of HAProxy (default 5)
  --health-check-fall N      failures that take a node out (default 3)
  --health-check-rise N      successes that put it back (default 1)
  --report FILE              the report (default demo-report.html)
  --json FILE                the same as data
`;

const options = {
  'time-scale': { type: 'string', default: '1' },
  rate: { type: 'string', default: '20' },
  fallback: { type: 'string', default: 'both' },
  'proxy-mode': { type: 'string', default: 'nftables' },
  'delay-shutdown': { type: 'string', default: '30' },
  'health-check-interval': { type: 'string', default: '5' },
  'health-check-fall': { type: 'string', default: '3' },
  'health-check-rise': { type: 'string', default: '1' },
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
      throw new ConfigError(
        'demo.flag',
        `--${flag} must be a number from ${min} to ${max}, not ${JSON.stringify(text)}`,
      );
    }
    return value;
  };
  const count = (flag: 'health-check-fall' | 'health-check-rise'): number => {
    const value = number(flag, 1, 10);
    if (Number.isInteger(value)) return value;
    throw new ConfigError('demo.flag', `--${flag} must be a whole number, not ${value}`);
  };
  const timeScale = number('time-scale', 0.02, 1);
  const scaled = (seconds: number): ReturnType<typeof millis> => millis(seconds * 1000 * timeScale);
  return {
    fallbacks: fallbacks(values.fallback),
    settings: {
      proxyMode: proxyMode(values['proxy-mode']),
      rate: number('rate', 1, 1000),
      requestTimeout: millis(500),
      healthCheck: {
        interval: scaled(number('health-check-interval', 0.1, 60)),
        fall: count('health-check-fall'),
        rise: count('health-check-rise'),
      },
      delayShutdown: scaled(number('delay-shutdown', 0, 300)),
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

function fallbacks(text: string): readonly ('off' | 'on')[] {
  if (text === 'both') return ['off', 'on'];
  if (text === 'off' || text === 'on') return [text];
  throw new ConfigError('demo.fallback', `--fallback must be off, on or both, not ${JSON.stringify(text)}`);
}

function proxyMode(text: string): RunSettings['proxyMode'] {
  if (text === 'nftables' || text === 'iptables') return text;
  throw new ConfigError('demo.proxyMode', `--proxy-mode must be nftables or iptables, not ${JSON.stringify(text)}`);
}
