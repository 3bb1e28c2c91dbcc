import { describe, expect, test } from 'vitest';
import { healthProfiles } from './health-profiles.ts';
import { profilesCommand } from './profiles-command.ts';

describe('switchyard-lb profiles', () => {
  test('names every profile with its timing, one a line', () => {
    const lines = profilesCommand([]).trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ')[0])).toEqual(Object.keys(healthProfiles));
    expect(lines.find((line) => line.startsWith('cloud-provider-kind '))).toMatch(
      /every 5 s, out after 3, in after 1; notices within 15 s$/,
    );
  });

  test('gives programs the profiles as they are', () => {
    expect(JSON.parse(profilesCommand(['--output=json']))).toEqual(
      JSON.parse(JSON.stringify(Object.values(healthProfiles))),
    );
  });

  test('says how it is used', () => {
    expect(profilesCommand(['--help'])).toMatch(/^Usage: switchyard-lb profiles \[--output text\|json\]\n/);
  });

  test.each([[['--output=yaml']], [['more']], [['--bogus']]])('refuses %j', (args) => {
    expect(() => profilesCommand(args)).toThrow(/^profiles: /);
  });
});
