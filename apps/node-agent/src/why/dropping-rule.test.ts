import { type Explanation, HostError, parseIp, parsePort, type Protocol } from '@switchyard/core';
import type { Loss } from '@switchyard/drops';
import type { DroppingRule, RuleTrace, TracedTraffic } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import { traceFlow, withRule } from './dropping-rule.ts';

const loss: Loss = {
  cause: 'otherRule',
  why: 'a rule dropped it',
  advice: 'find the rule',
  certainty: 'likely',
  service: undefined,
  services: [],
  frontend: '10.96.0.10:80/TCP',
  client: undefined,
  direction: 'request',
  where: { netns: 'node', hook: 'forward' },
  reason: 'NETFILTER_DROP',
  count: 1,
};

function traceOf(dropped: DroppingRule | undefined): RuleTrace {
  return { droppedBy: () => dropped, [Symbol.dispose]: () => undefined };
}

const chain = { family: 'inet', table: 'netpol', chain: 'pods' };

test.each([
  ['rule 3 of chain inet netpol pods (handle 7)', { ...chain, rule: { handle: 7n, position: 3 } }],
  ['a rule of chain inet netpol pods (handle 7)', { ...chain, rule: { handle: 7n, position: undefined } }],
  ['the policy of chain inet netpol pods', chain],
])('a loss has the name of its rule: %s', (text, dropped) => {
  expect(withRule(loss, traceOf(dropped))).toEqual({
    ...loss,
    why: `a rule dropped it; it is ${text}`,
    advice: 'see it with `nft -a list chain inet netpol pods`; it may be a network policy',
    certainty: 'sure',
  });
});

test.each([
  ['no rule was seen', loss, undefined],
  ['no rule is the cause', { ...loss, cause: 'noRoute' as const }, chain],
  ['it was dropped in a pod', { ...loss, where: { netns: 'pod' as const, hook: 'input' } }, chain],
])('a loss stays as it is where %s', (_, given, dropped) => {
  expect(withRule(given, traceOf(dropped))).toBe(given);
});

const endpoints = Array.from({ length: 40 }, (_, index) => ({
  address: parseIp(`10.244.1.${index}`),
  port: parsePort(8000 + index),
}));
const flow = (protocol: Protocol) => ({
  from: parseIp('10.244.2.2'),
  to: parseIp('10.96.0.10'),
  port: parsePort(80),
  protocol,
  explanation: { verdict: { kind: 'forward', endpoints } } as unknown as Explanation,
});

test('a trace is of the Service and its endpoints, with few ports', async () => {
  const opened: TracedTraffic[] = [];
  await traceFlow(flow('TCP'), async (traffic) => (opened.push(traffic), traceOf(undefined)));
  expect(opened).toMatchObject([{ client: '10.244.2.2', protocol: 'TCP' }]);
  expect([...(opened[0]?.ports ?? [])].slice(0, 3)).toEqual([80, 8000, 8001]);
  expect(opened[0]).toMatchObject({ ports: { size: 16 }, servers: { size: 41 } });
});

test('there is no trace of SCTP, and none without the right', async () => {
  const refused = () => Promise.reject(new HostError('nftables', 'EPERM'));
  expect(await traceFlow(flow('SCTP'), refused)).toBeUndefined();
  expect(await traceFlow(flow('UDP'), refused)).toBeUndefined();
  await expect(traceFlow(flow('UDP'), () => Promise.reject(new TypeError('a fault')))).rejects.toThrow('a fault');
});
