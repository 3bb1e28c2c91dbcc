import { describe, expect, test } from 'vitest';
import { askCommand, isQuestion } from './ask-command.ts';

const { signal } = new AbortController();
const answer = {
  node: 'n1',
  verdict: 'refused',
  where: 'this node, by the Service',
  why: 'no endpoint is usable',
  advice: 'make one ready',
  certainty: 'sure',
  service: 'shop/cart:/TCP',
};

/** Runs a command line against an agent that answers with this body. */
async function run(args: readonly string[], body: string, status = 200) {
  let printed = '';
  const requests: string[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit) => {
    requests.push(`${init?.method} ${String(url)}`);
    return new Response(body, { status });
  };
  const exit = await askCommand(args, { print: (text) => (printed += text), fetch }, signal);
  return { exit, printed, requests };
}

describe('why', () => {
  test('prints five lines, and has the verdict as exit status', async () => {
    const { exit, printed, requests } = await run(['why', '10.244.1.5', '10.96.0.10:80'], JSON.stringify(answer));
    expect(requests).toEqual(['GET http://127.0.0.1:10249/debug/why?from=10.244.1.5&to=10.96.0.10%3A80&format=json']);
    expect(printed).toBe(
      [
        '10.244.1.5 -> 10.96.0.10:80 (shop/cart:/TCP) on n1',
        '',
        'verdict  refused',
        'where    this node, by the Service',
        'why      no endpoint is usable',
        'change   make one ready',
        'sure     sure',
        '',
      ].join('\n'),
    );
    expect(exit).toBe(2);
  });

  test('sends probes, to the agent that is named', async () => {
    const args = ['why', 'a', 'b:1', '--probe', '--seconds=1', '--agent=http://127.0.0.1:10239'];
    const { exit, requests } = await run(args, JSON.stringify({ ...answer, verdict: 'works' }));
    expect(requests).toEqual(['PUT http://127.0.0.1:10239/debug/why?from=a&to=b%3A1&format=json&seconds=1&probes=10']);
    expect(exit).toBe(0);
  });
});

describe('losses', () => {
  test.each([
    ['TIME FROM\n', 0],
    ['# packets are not watched\nTIME FROM\n\n', 0],
    ['TIME FROM\n10:00:00 10.244.1.5\n', 2],
  ])('prints %j and ends with %s', async (body, expected) => {
    const { exit, printed, requests } = await run(['losses', '--namespace=shop', '--follow'], body);
    expect(printed).toBe(body);
    expect(requests).toEqual(['GET http://127.0.0.1:10249/debug/losses?seconds=3600&namespace=shop']);
    expect(exit).toBe(expected);
  });
});

test('help is printed, and no agent is needed', async () => {
  const { exit, printed, requests } = await run(['losses', '--help'], '');
  expect([exit, requests]).toEqual([0, []]);
  expect(printed).toMatch(/^usage: switchyard-agent why FROM ADDRESS:PORT/);
});

test.each([
  [['why', '10.244.1.5'], 'why takes 2 operands; got 1 (switchyard-agent why --help)'],
  [['losses', '--colour'], "Unknown option '--colour'"],
])('%j is refused', async (args, reason) => {
  await expect(run(args, '')).rejects.toThrow(reason);
});

test('an answer that is an error is shown with the request', async () => {
  await expect(run(['why', 'x', 'y'], 'from "x" is not an IP address\n\nusage', 400)).rejects.toThrow(
    'the agent answered 400 to GET http://127.0.0.1:10249/debug/why?from=x&to=y&format=json: from "x" is not an IP address',
  );
});

test('an agent that does not run is named with the next step', async () => {
  const fetch = () =>
    Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:10249') }));
  await expect(askCommand(['losses'], { print: () => undefined, fetch }, signal)).rejects.toThrow(
    'connect ECONNREFUSED 127.0.0.1:10249; does it run, and is --agent right?',
  );
});

test.each([
  [['why', 'a', 'b'], true],
  [['losses'], true],
  [['--config=why'], false],
  [[], false],
])('%j is a question: %s', (args, expected) => {
  expect(isQuestion(args)).toBe(expected);
});
