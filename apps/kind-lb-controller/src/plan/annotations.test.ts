import { seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { planDefaults } from '../testing/plan-input.ts';
import { annotationNames, parseAnnotations } from './annotations.ts';
import { problemText } from './problem.ts';

type Written = Readonly<Record<string, string>>;
const full = (written: Written): Written =>
  Object.fromEntries(Object.entries(written).map(([name, value]) => [`lb.switchyard.dev/${name}`, value]));
const settingsOf = (written: Written): unknown => parseAnnotations(full(written), planDefaults).settings;
const faultsOf = (written: Written): readonly string[] =>
  parseAnnotations(full(written), planDefaults).problems.map(
    ({ name, value, fault }) => `${name.slice('lb.switchyard.dev/'.length)}=${value}: ${fault}`,
  );

test('without annotations the defaults of the controller count', () => {
  expect(settingsOf({})).toEqual({
    profile: planDefaults.healthProfileOf(undefined, {}),
    path: 'proxy',
    proxyProtocol: 'none',
    isFastDrain: false,
  });
  const { settings } = parseAnnotations({}, { ...planDefaults, isFastDrain: true });
  expect(settings?.isFastDrain).toBe(true);
});

describe('what is written', () => {
  test.each<[title: string, written: Written, expected: object]>([
    ['a profile', { 'health-check-profile': 'cloud-provider-kind' }, { profile: { name: 'cloud-provider-kind' } }],
    ['an interval', { 'health-check-interval': '2s' }, { profile: { interval: 2000, fall: 3 } }],
    ['half a second', { 'health-check-interval': '500ms' }, { profile: { interval: 500 } }],
    [
      'an interval for nodes that are DOWN',
      { 'health-check-down-interval': '1s' },
      { profile: { interval: 5000, downInterval: 1000 } },
    ],
    ['counts', { 'health-check-fall': '1', 'health-check-rise': '2' }, { profile: { fall: 1, rise: 2 } }],
    ['a timeout', { 'health-check-timeout': '1m' }, { profile: { timeout: seconds(60) } }],
    ['white space around', { path: ' transparent\n' }, { path: 'transparent' }],
    ['the usual path by name', { path: 'proxy' }, { path: 'proxy' }],
    ['the PROXY protocol', { 'proxy-protocol': 'v2' }, { proxyProtocol: 'v2' }],
    ['no PROXY protocol, by name', { 'proxy-protocol': 'none', path: 'transparent' }, { proxyProtocol: 'none' }],
    ['fast drain', { 'fast-drain': 'true' }, { isFastDrain: true }],
    ['no fast drain, by name', { 'fast-drain': 'false' }, { isFastDrain: false }],
  ])('%s counts', (_, written, expected) => {
    expect(settingsOf(written)).toMatchObject(expected);
    expect(faultsOf(written)).toEqual([]);
  });
});

const aDuration = 'it must be a duration of 100ms to 1h, such as 5s or 500ms';
const aCount = 'it must be a whole number of 1 to 100';

describe('what cannot be used', () => {
  test.each<[written: Written, faults: readonly string[]]>([
    [
      { 'health-check-intervall': '5s' },
      [`health-check-intervall=5s: there is no such annotation; there is ${annotationNames.join(', ')}`],
    ],
    [{ 'health-check-interval': '5' }, [`health-check-interval=5: ${aDuration}`]],
    [{ 'health-check-interval': '' }, [`health-check-interval=: ${aDuration}`]],
    [{ 'health-check-interval': '99ms' }, [`health-check-interval=99ms: ${aDuration}`]],
    [{ 'health-check-down-interval': '0' }, [`health-check-down-interval=0: ${aDuration}`]],
    [{ 'health-check-timeout': '61m' }, [`health-check-timeout=61m: ${aDuration}`]],
    [{ 'health-check-fall': '0' }, [`health-check-fall=0: ${aCount}`]],
    [{ 'health-check-rise': '1.5' }, [`health-check-rise=1.5: ${aCount}`]],
    [{ 'health-check-rise': '101' }, [`health-check-rise=101: ${aCount}`]],
    [{ path: 'direct' }, ['path=direct: it must be proxy or transparent']],
    [{ 'proxy-protocol': 'v1' }, ['proxy-protocol=v1: it must be none or v2']],
    [{ 'fast-drain': 'yes' }, ['fast-drain=yes: it must be true or false']],
    [
      { path: 'transparent', 'proxy-protocol': 'v2' },
      ["proxy-protocol=v2: not with lb.switchyard.dev/path: transparent, which keeps the client's address by itself"],
    ],
    [
      { path: 'x', 'fast-drain': 'x', 'health-check-fall': '2' },
      ['fast-drain=x: it must be true or false', 'path=x: it must be proxy or transparent'],
    ],
  ])('%j', (written, faults) => {
    expect(faultsOf(written)).toEqual(faults);
    expect(settingsOf(written)).toBeUndefined();
  });

  test('an unknown profile is reported with the known ones', () => {
    expect(faultsOf({ 'health-check-profile': 'aws' })).toEqual([
      expect.stringMatching(/^health-check-profile=aws: no health-check profile is called 'aws'; there is cloud/),
    ]);
  });

  test('annotations of others are ignored', () => {
    expect(parseAnnotations({ 'example.com/path': 'x' }, planDefaults).problems).toEqual([]);
  });
});

test('a problem says what was written, what is allowed and what becomes of it', () => {
  const [problem] = parseAnnotations(full({ 'health-check-fall': 'three' }), planDefaults).problems;
  expect(problem && problemText(problem)).toBe(
    'annotation lb.switchyard.dev/health-check-fall: "three" cannot be used: it must be a whole number of 1 to 100; nothing is changed until it is corrected',
  );
});
