import { describe, expect, test } from 'vitest';
import { pods } from './resources/pods.ts';
import { matchesSelector } from '../workloads/facts.ts';
import { nameOfFieldSelector, parseFieldSelector, parseLabelSelector } from './selectors.ts';

const labels = { app: 'web', tier: 'front', 'example.com/zone': 'z1', version: '7' };
const object = {
  metadata: { name: 'p', namespace: 'd', labels },
  spec: { nodeName: 'n1' },
  status: { phase: 'Running' },
};

describe('label selectors', () => {
  test.each([
    ['app=web', true],
    ['app==web,tier=front', true],
    ['app=web,tier=back', false],
    ['app!=web', false],
    ['absent!=x', true],
    ['app', true],
    ['!app', false],
    ['!absent', true],
    ['app in (api, web)', true],
    ['app notin (api,web)', false],
    ['absent notin (x)', true],
    ['example.com/zone in (z1,z2),app', true],
    ['app=', false],
  ])('%s: %s', (text, result) => {
    expect(parseLabelSelector(text)?.(object)).toBe(result);
  });

  test('an empty selector matches everything', () => {
    expect(parseLabelSelector('')).toBeUndefined();
  });

  test.each(['a===b,,', 'app in web', '=x', 'a b'])('%s cannot be parsed', (text) => {
    expect(() => parseLabelSelector(text)).toThrow(/unable to parse requirement/);
  });
});

describe('field selectors', () => {
  test.each([
    ['metadata.name=p', true],
    ['metadata.namespace!=d', false],
    ['spec.nodeName=n1,status.phase=Running', true],
    ['status.phase==Pending', false],
    ['spec.nodeName=', false],
  ])('%s: %s', (text, result) => {
    expect(parseFieldSelector(text, pods)?.(object)).toBe(result);
  });

  test.each([
    ['metadata.name=p', 'p'],
    ['spec.nodeName=n,metadata.name==q', 'q'],
    ['metadata.name!=p', undefined],
    ['spec.nodeName=n', undefined],
  ])('the name pinned by %s is %s', (text, name) => {
    expect(nameOfFieldSelector(text)).toBe(name);
  });
});

test.each([
  ['In', { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] }, true],
  ['NotIn with an absent label', { matchExpressions: [{ key: 'x', operator: 'NotIn', values: ['web'] }] }, true],
  ['Exists', { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'x', operator: 'Exists' }] }, false],
  ['DoesNotExist', { matchExpressions: [{ key: 'x', operator: 'DoesNotExist' }] }, true],
  ['an unknown operator', { matchExpressions: [{ key: 'app', operator: 'Near' }] }, false],
])('a selector object with %s', (_what, selector, result) => {
  expect(matchesSelector(selector, labels)).toBe(result);
});
