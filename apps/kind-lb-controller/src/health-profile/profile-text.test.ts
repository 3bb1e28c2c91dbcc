import { millis, parsePort } from '@switchyard/core';
import { expect, test } from 'vitest';
import { healthProfile } from './health-profiles.ts';
import { effectiveProfileText } from './profile-text.ts';

const local = parsePort(31_234);

test.each([
  [
    'a plain profile',
    healthProfile('cloud-provider-kind'),
    'HTTP GET :31234/healthz every 5 s, out after 3 failures (10 to 15 s), in after 1',
  ],
  [
    'one with a timeout',
    healthProfile('oci-lb'),
    'HTTP GET :31234/healthz every 10 s, answered within 3 s, out after 3 failures (20 to 30 s), in after 3',
  ],
  [
    'one that fails open',
    healthProfile('google-nlb'),
    'HTTP GET :31234/healthz every 8 s, answered within 1 s, out after 3 failures (16 to 24 s), in after 1, ' +
      'while none is in, all are used',
  ],
  [
    'an own one',
    healthProfile('switchyard'),
    'HTTP GET :31234/healthz every 2 s, out after 1 failure (0 to 2 s), in after 1, ' +
      'nodes that are out asked every 250 ms, while none is in, those of the last 10 s serve on',
  ],
  [
    'one in milliseconds',
    healthProfile('cloud-provider-kind', { interval: millis(100) }),
    'HTTP GET :31234/healthz every 100 ms, out after 3 failures (200 to 300 ms), in after 1',
  ],
])('effectiveProfileText of %s', (_, profile, text) => {
  expect(effectiveProfileText(profile, local)).toBe(text);
});

test('effectiveProfileText of a Cluster Service names the port of the proxy’s own health', () => {
  const profile = healthProfile('cloud-provider-kind');
  const text = effectiveProfileText(profile, profile.clusterPort);
  expect(text).toMatch(/^HTTP GET :10256\/healthz every 5 s/);
});
