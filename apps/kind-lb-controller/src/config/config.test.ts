import { ConfigError } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { parseConfig } from './config.ts';

const base = ['--kubeconfig', '/k', '--address', '172.18.0.50'];

test('the lab’s flags', () => {
  const config = parseConfig([
    '--kubeconfig=/k',
    '--address=172.18.0.50,fd00:172:18:0:0::50',
    '--health-check-interval=500ms',
    '--health-check-fall=2',
    '--health-check-rise=3',
    '--event-log=/tmp/e.jsonl',
  ]);
  expect(config).toMatchObject({
    kind: 'run',
    kubeconfig: '/k',
    source: { kind: 'shared', addresses: ['172.18.0.50', 'fd00:172:18::50'] },
    profile: { interval: 500, fall: 2, rise: 3, timeout: undefined, connectTimeout: 5000 },
    eventLog: '/tmp/e.jsonl',
    isKeptOnExit: false,
    haproxy: 'haproxy',
    logLevel: 'info',
  });
});

test('short names of the health-check flags mean the same', () => {
  expect(parseConfig([...base, '--fall', '4', '--rise', '5', '--timeout', '1s'])).toMatchObject({
    profile: { fall: 4, rise: 5, timeout: 1000 },
  });
});

test('KUBECONFIG stands in for the flag', () => {
  expect(parseConfig(['--address', '172.18.0.50'], { KUBECONFIG: '/env' })).toMatchObject({ kubeconfig: '/env' });
});

test('each network namespace has a run directory of its own', () => {
  expect(parseConfig(base)).toMatchObject({ runDirectory: expect.stringMatching(/^\/run\/switchyard-lb\/\d+$/) });
});

test('a pool with its interface', () => {
  const flags = ['--kubeconfig', '/k', '--pool', '172.18.0.200/29', '--interface', 'eth0'];
  expect(parseConfig(flags)).toMatchObject({
    source: { kind: 'pool', cidrs: ['172.18.0.200/29'] },
    interfaceName: 'eth0',
  });
});

test('help lists the flags', () => {
  expect(parseConfig(['--help'])).toMatchObject({ kind: 'help', text: expect.stringContaining('--health-check-fall') });
});

describe('one clear line for', () => {
  test.each<[what: string, flags: readonly string[], message: RegExp]>([
    ['an unknown flag', [...base, '--foo'], /unknown option '--foo'/],
    ['an argument', [...base, 'foo'], /too many arguments/],
    ['no API server', ['--address', '172.18.0.50'], /--kubeconfig FILE/],
    ['no addresses', ['--kubeconfig', '/k'], /either --address or --pool/],
    ['both kinds of addresses', [...base, '--pool', '10.0.0.0/24'], /either --address or --pool/],
    ['a bad address', ['--kubeconfig', '/k', '--address', '172.18.0'], /--address: not an IP address: "172.18.0"/],
    ['two addresses of a family', [...base, '--address', '172.18.0.51'], /more than one IPv4 address/],
    ['a bad pool', ['--kubeconfig', '/k', '--pool', '10.0.0.0/33'], /--pool: not a CIDR/],
    ['a pool without interface', ['--kubeconfig', '/k', '--pool', '10.0.0.0/24'], /--pool needs --interface/],
    ['an interface without pool', [...base, '--interface', 'eth0'], /--interface is for --pool/],
    ['a bad duration', [...base, '--health-check-interval', '5'], /--health-check-interval: not a positive duration/],
    ['a bad count', [...base, '--fall', 'x'], /--fall: not a whole number/],
    ['an unknown profile', [...base, '--health-check-profile', 'x'], /no health-check profile is called 'x'/],
    ['a namespace that is not there', [...base, '--netns', 'swy-none'], /there is no namespace swy-none/],
    ['a path as a namespace', [...base, '--netns', '../x'], /not a namespace name/],
    ['a long run directory', [...base, '--run-directory', `/${'x'.repeat(80)}`], /longer than 70 characters/],
    ['a log level', [...base, '--log-level', 'loud'], /Allowed choices are/],
  ])('%s', (_, flags, message) => {
    expect(() => parseConfig(flags, {})).toThrow(ConfigError);
    expect(() => parseConfig(flags, {})).toThrow(message);
    try {
      parseConfig(flags, {});
    } catch (error) {
      expect((error as Error).message.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(2);
    }
  });
});
