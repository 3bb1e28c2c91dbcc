import { expect, test } from 'vitest';
import { runScenario } from './run-scenario.ts';

const { signal } = new AbortController();
const text = `name: n
why: w
given: { services: [{ name: shop/cart, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }] }
steps: [{ from: pod, to: '10.96.0.10:80/TCP', expect: reject }]
`;
const proxy = { command: 'proxy {config}' };

// A valid call makes a lab: see test/privileged/own-scenario.test.ts and examples/own-scenario. These are refused before that.
test.each([
  [
    'a file that is not there',
    { scenario: '/nowhere/cart.yaml', proxy },
    /^cannot read the scenario \/nowhere\/cart\.yaml: ENOENT/,
  ],
  ['a name that is no id', { scenario: { name: 'A b', text }, proxy }, /^A b: the name of a scenario consists of/],
  ['an unknown field', { scenario: { name: 'cart', text: `${text}more: 1\n` }, proxy }, /^cart\.yaml:5: more: /],
  [
    'an unknown placeholder',
    { scenario: { name: 'cart', text }, proxy: { command: 'p {configs}' } },
    /has \{configs\}/,
  ],
])('runScenario refuses %s', async (_, options, message) => {
  await expect(runScenario(options, signal)).rejects.toThrow(message);
});
