import { knownChecks } from '@switchyard/loss';
import { describe, expect, test } from 'vitest';
import { readConfig } from './config.ts';
import { articleHealthCheck } from './testing/synthetic-run.ts';

function errorOf(args: readonly string[]): string {
  try {
    readConfig(args);
  } catch (error) {
    return (error as Error).message;
  }
  return 'accepted';
}

describe('the options of the demo', () => {
  test('without any, both runs have the timings of the article', () => {
    expect(readConfig([])).toEqual({
      fallbacks: ['off', 'on'],
      settings: {
        proxyMode: 'nftables',
        rate: 20,
        requestTimeout: 500,
        healthCheck: articleHealthCheck(1),
        runtime: 'process',
        fastDrain: false,
        delayShutdown: 30_000,
        timeScale: 1,
      },
      jsonFile: undefined,
      reportFile: 'demo-report.html',
    });
  });

  test('the time scale shrinks every duration but the timeout of a request', () => {
    const args = ['--time-scale=0.1', '--delay-shutdown=5', '--health-check-interval', '2', '--health-check-fall=1'];
    const config = readConfig(args);
    expect(config).toMatchObject({
      settings: {
        requestTimeout: 500,
        healthCheck: { interval: 200, downInterval: 200, fall: 1, rise: 1 },
        delayShutdown: 500,
        timeScale: 0.1,
      },
    });
  });

  test('a profile is named, and explicit flags replace parts of it', () => {
    const args = ['--health-check-profile=switchyard', '--health-check-fall=2', '--fast-drain', '--lb=docker'];
    expect(readConfig(args)).toMatchObject({
      settings: {
        healthCheck: { profile: 'switchyard', interval: 2000, downInterval: 250, fall: 2, rise: 1 },
        fastDrain: true,
        runtime: 'docker',
      },
    });
  });

  test.each([
    ['--fallback=off', ['off']],
    ['--fallback=on', ['on']],
    ['--fallback=both', ['off', 'on']],
  ])('%s', (arg, fallbacks) => {
    expect(readConfig([arg])).toMatchObject({ fallbacks });
  });

  test.each(['--help', '-h'])('%s prints the text', (arg) => {
    expect(readConfig([arg])).toBe('help');
  });

  test.each([
    [['--rate=0'], '--rate must be a number from 1 to 1000, not "0"'],
    [['--rate=many'], '--rate must be a number from 1 to 1000, not "many"'],
    [['--time-scale=2'], '--time-scale must be a number from 0.02 to 1, not "2"'],
    [['--delay-shutdown='], '--delay-shutdown must be a number from 0 to 300, not ""'],
    [['--health-check-fall=2.5'], '--health-check-fall must be a whole number, not 2.5'],
    [['--health-check-rise=0'], '--health-check-rise must be a number from 1 to 10, not "0"'],
    [['--fallback=maybe'], '--fallback must be off, on or both, not "maybe"'],
    [['--proxy-mode=ipvs'], '--proxy-mode must be one of nftables, iptables, ebpf, not "ipvs"'],
    [['--lb=podman'], '--lb must be process or docker, not "podman"'],
    [
      ['--health-check-profile=x'],
      `--health-check-profile must be one of ${Object.keys(knownChecks).join(', ')}, not "x"`,
    ],
    [['--bogus'], "Unknown option '--bogus'; ./dev demo --help lists the options"],
  ])('%j is refused in one line', (args, message) => {
    expect(errorOf(args)).toBe(message);
  });

  test('a message of several lines becomes one', () => {
    expect(errorOf(['--rate', '-1'])).toMatch(/^Option '--rate' argument is ambiguous.*lists the options$/);
  });
});
