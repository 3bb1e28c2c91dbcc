import { millis } from '@switchyard/core';
import type { Loss } from '@switchyard/drops';
import { expect, test } from 'vitest';
import { answerText, judge, type Observation } from './verdict.ts';

const forward: Observation['explanation'] = {
  verdict: { kind: 'forward', endpoints: [], masquerade: false },
  service: undefined,
  frontend: undefined,
  reasons: [],
};
const reject: Observation['explanation'] = {
  ...forward,
  verdict: { kind: 'reject' },
  reasons: [{ code: 'noUsableEndpoints', text: 'no endpoint is usable anywhere' }],
};
const loss: Loss = {
  cause: 'otherRule',
  why: 'a rule dropped it',
  advice: 'find the rule',
  certainty: 'sure',
  service: undefined,
  services: [],
  frontend: '10.96.0.10:80/TCP',
  client: undefined,
  direction: 'answer',
  where: { netns: 'node', hook: 'forward' },
  reason: 'NETFILTER_DROP',
  count: 1,
};
const answered = { status: 'answered', took: millis(1.25) } as const;
const silent = { status: 'silent', took: millis(1500) } as const;
const refused = { status: 'failed', code: 'ECONNREFUSED', took: millis(1) } as const;

test.each<[string, Partial<Observation>, object]>([
  ['an answered probe works', { probes: [answered] }, { verdict: 'works', certainty: 'sure' }],
  [
    'a loss beside an answered probe is mentioned',
    { probes: [answered], losses: [loss] },
    { why: expect.stringContaining('a rule dropped it') },
  ],
  [
    'a loss has its place, its reason and its advice',
    { probes: [silent], losses: [loss] },
    {
      verdict: 'lost',
      where: 'this node, in the namespace of the node, at the hook forward, on the way back',
      why: 'a rule dropped it [otherRule, kernel: NETFILTER_DROP]',
      advice: 'find the rule',
    },
  ],
  ['a refusal by the Service is no loss', { losses: [{ ...loss, cause: 'noEndpoints' }] }, { verdict: 'refused' }],
  [
    'without a drop the decision counts',
    { explanation: reject },
    { verdict: 'refused', why: 'no endpoint is usable anywhere' },
  ],
  [
    'an unanswered probe that was not dropped here went on',
    { probes: [silent] },
    { verdict: 'unanswered', where: 'beyond this node', certainty: 'likely' },
  ],
  ['a failed probe has its error', { probes: [refused] }, { why: expect.stringContaining('failed with ECONNREFUSED') }],
  [
    'several answered probes have the time of the slowest',
    { probes: [{ ...answered, took: millis(7) }, answered] },
    { why: 'all 2 probes were answered, the slowest after 7.0 ms' },
  ],
  [
    'of several probes the lost ones are counted',
    { probes: [answered, silent, silent], losses: [loss] },
    { verdict: 'lost', why: '2 of 3 probes: a rule dropped it [otherRule, kernel: NETFILTER_DROP]' },
  ],
  [
    'of several probes the unanswered ones are counted',
    { probes: [answered, silent, refused] },
    {
      verdict: 'unanswered',
      why: expect.stringMatching(/^2 of 3 probes: got no answer or failed with ECONNREFUSED; /),
    },
  ],
  ['without BPF nothing is certain', { probes: [silent], watched: false }, { where: 'unknown', certainty: 'unknown' }],
  ['without a probe it is forwarded', {}, { verdict: 'forwarded', certainty: 'likely' }],
])('%s', (_, more, expected) => {
  expect(judge({ explanation: forward, probes: [], losses: [], watched: true, ...more })).toMatchObject(expected);
});

test('the answer has five lines', () => {
  const text = answerText('a -> b', judge({ explanation: reject, probes: [], losses: [], watched: true }));
  expect(
    text
      .trim()
      .split('\n')
      .slice(2)
      .map((line) => line.slice(0, 7).trim()),
  ).toEqual(['verdict', 'where', 'why', 'change', 'sure']);
});
