import { describe, expect, test } from 'vitest';
import type { IpFamily } from '../model/ip/address.ts';
import { type Millis, millis, seconds } from '../base/time.ts';
import { type FamilyProgress, healthzAnswer, livezAnswer, proxyHealth } from './proxy-health.ts';

const now = millis(Date.parse('2026-11-21T10:00:00Z'));
const earlier = millis(now - 90_000);
const earliest = millis(now - 100_000);
const never = '0001-01-01T00:00:00Z';

const idle: FamilyProgress = { pendingFor: undefined, lastApplied: earlier };
const starting: FamilyProgress = { pendingFor: undefined, lastApplied: undefined };
const busy: FamilyProgress = { pendingFor: seconds(59.9), lastApplied: earlier };
const late: FamilyProgress = { pendingFor: seconds(60), lastApplied: earlier };

function healthOf(ipv4: FamilyProgress, ipv6: FamilyProgress | undefined, isNodeEligible = true) {
  const families = new Map<IpFamily, FamilyProgress>([['IPv4', ipv4]]);
  if (ipv6 !== undefined) families.set('IPv6', ipv6);
  return proxyHealth({ families, timeout: seconds(60), isNodeEligible });
}

describe('healthz and livez', () => {
  test.each([
    ['fact 38: an idle proxy is healthy for ever', healthOf(idle, idle), 200, 200],
    ['a change that waits less than the timeout does no harm', healthOf(busy, idle), 200, 200],
    ['fact 38: a change that waits for the timeout makes both red', healthOf(late, idle), 503, 503],
    ['one late family is enough', healthOf(idle, late), 503, 503],
    ['a single family can be healthy', healthOf(idle, undefined), 200, 200],
    ['before the first apply load balancers must wait, the process is fine', healthOf(starting, idle), 503, 200],
    [
      'a proxy that never managed its first apply is not live',
      healthOf({ ...late, lastApplied: undefined }, idle),
      503,
      503,
    ],
    ['a node that goes away is red for load balancers only', healthOf(idle, idle, false), 503, 200],
  ])('%s', (...row) => {
    const [, health, healthz, livez] = row;
    expect(healthzAnswer(health, now).status).toBe(healthz);
    expect(livezAnswer(health, now).status).toBe(livez);
  });

  test.each<readonly [string, ReturnType<typeof healthOf>, number | string]>([
    ['fact 39: on success lastUpdated is now, however long nothing happened', healthOf(idle, idle), now],
    [
      'fact 39: on failure it is the latest apply of any family',
      healthOf(late, { ...idle, lastApplied: earliest }),
      earlier,
    ],
    [
      'on an ineligible node it is the latest apply',
      healthOf({ ...idle, lastApplied: earliest }, idle, false),
      earlier,
    ],
    ['the latest apply is found in any order', healthOf(idle, { ...idle, lastApplied: earliest }, false), earlier],
    ['before any apply it is the zero time', healthOf(starting, starting), never],
  ])('%s', (_, health, expected) => {
    const { lastUpdated } = JSON.parse(healthzAnswer(health, now).body) as { lastUpdated: string };
    expect(lastUpdated).toBe(typeof expected === 'string' ? expected : timeOf(expected));
  });

  test('the body of /healthz names node and families', () => {
    const answer = healthzAnswer(healthOf(late, starting, true), now);
    expect(JSON.parse(answer.body)).toEqual({
      lastUpdated: timeOf(earlier),
      currentTime: '2026-11-21T10:00:00.000Z',
      nodeEligible: true,
      healthy: false,
      status: {
        IPv4: { lastUpdated: timeOf(earlier), healthy: false },
        IPv6: { lastUpdated: never, healthy: true },
      },
    });
    expect(answer.headers).toEqual({ 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' });
  });

  test('the body of /livez says nothing of the node', () => {
    expect(JSON.parse(livezAnswer(healthOf(idle, idle, false), now).body)).not.toHaveProperty('nodeEligible');
  });

  test.each([
    ['a node that goes away has a healthy proxy', healthOf(idle, idle, false), true, true],
    ['before the first apply the proxy is live, not healthy', healthOf(starting, idle), false, true],
    ['a proxy that is behind is neither', healthOf(late, idle), false, false],
  ])('"healthy" is about the proxy alone: %s', (...row) => {
    const [, health, inHealthz, inLivez] = row;
    expect(JSON.parse(healthzAnswer(health, now).body)).toMatchObject({ healthy: inHealthz });
    expect(JSON.parse(livezAnswer(health, now).body)).toMatchObject({ healthy: inLivez });
  });
});

function timeOf(time: Millis | number): string {
  return new Date(time).toISOString();
}
