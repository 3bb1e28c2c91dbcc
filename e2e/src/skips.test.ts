import { fileURLToPath } from 'node:url';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Cell } from './cell.ts';
import { readMatrix } from './matrix.ts';
import { chooseTests, patternOf, readSkipFolder, readSkips } from './skips.ts';

const entry = { test: 'should break', reason: 'it breaks the cluster', link: 'https://example.com/why' };
const cell: Cell = { id: 'x', backend: 'nftables', ipFamily: 'dual', kubernetes: '1.36', loadBalancer: 'none' };
const focus = ['[sig-network] Services'];

const faults: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  [
    'no reason',
    JSON.stringify([{ ...entry, reason: undefined }]),
    /\[0\]\.reason: expected a reason, in words, found nothing$/,
  ],
  [
    'a reason that says nothing',
    JSON.stringify([{ ...entry, reason: 'flaky' }]),
    /\[0\]\.reason: expected a reason, in words, found "flaky"$/,
  ],
  [
    'no link',
    JSON.stringify([{ ...entry, link: 'see the issue' }]),
    /\[0\]\.link: expected a link that begins with https:\/\//,
  ],
  [
    'an unknown cell',
    JSON.stringify([{ ...entry, cells: { backend: ['ipvs'] } }]),
    /\[0\]\.cells\.backend\[0\]: expected one of nftables/,
  ],
  [
    'a misspelt field',
    JSON.stringify([{ ...entry, cell: {} }]),
    /\[0\]\.cell: there is no such field, only test, reason, link, cells$/,
  ],
  ['no test', JSON.stringify([{ ...entry, test: [] }]), /\[0\]\.test: expected at least one part of a test's name/],
  ['no list', 'test: a', /: the file: expected a list/],
];

describe('the skip list', () => {
  test.each(faults)('is refused with the place: %s', (_, text, message) => {
    expect(() => readSkips('skips/a.yaml', text)).toThrow(message);
  });

  test('that we have can be read, and every entry is for a cell that exists', async () => {
    const file = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
    const skips = await readSkipFolder(file('upstream-skips'));
    expect(skips.length).toBeGreaterThan(0);
    const { upstreamFocus, loadBalancers } = readMatrix('m', readFileSync(file('matrix.json'), 'utf8'));
    expect(upstreamFocus.length).toBeGreaterThan(0);
    for (const { loadBalancer } of skips)
      expect(loadBalancers).toEqual(expect.arrayContaining([...(loadBalancer ?? [])]));
  });
});

/**
 * Tests of Kubernetes 1.36.2 that the matrix and the skip list name: one for each focus, one for each entry. Each run checks them against
 * the binary's own list; this record shows a stale entry where no binary is at hand.
 */
const testsOf136 = [
  '[sig-network] Services should work after restarting apiserver [Disruptive]',
  '[sig-network] Services should work after restarting kube-proxy [Disruptive]',
  '[sig-network] LoadBalancers [Feature:LoadBalancer] should handle load balancer cleanup finalizer for service [Slow]',
  '[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should work for type=LoadBalancer',
  '[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should only target nodes with endpoints',
  '[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should target all nodes with endpoints',
  '[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should work from pods',
  '[sig-network] Networking Granular Checks: Services should function for pod-Service: sctp [Feature:SCTPConnectivity]',
  '[sig-network] Conntrack proxy implementation should not be vulnerable to the invalid conntrack state bug [Privileged]',
  '[sig-network] KubeProxy should update metric for tracking accepted packets destined for localhost nodeports [Feature:KubeProxyNFAcct]',
  '[sig-network] Traffic Distribution should route traffic to an endpoint in the same zone when using PreferClose',
];

describe('the tests of Kubernetes 1.36', () => {
  const file = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
  const matrix = readMatrix('e2e/matrix.json', readFileSync(file('matrix.json'), 'utf8'));
  const chosen = async (ipFamily: Cell['ipFamily'], loadBalancer: Cell['loadBalancer']) => {
    const skips = await readSkipFolder(file('upstream-skips'));
    const one: Cell = { id: 'x', backend: 'nftables', ipFamily, kubernetes: '1.36', loadBalancer };
    return chooseTests(testsOf136, { focus: matrix.upstreamFocus, skips, cell: one });
  };

  test.each([
    ['ipv4', 'switchyard'],
    ['ipv6', 'switchyard'],
    ['dual', 'switchyard'],
    ['dual', 'none'],
  ] as const)('have every name that cells of %s with load balancer %s use', async (ipFamily, loadBalancer) => {
    const { unused, unusedFocus } = await chosen(ipFamily, loadBalancer);
    expect(unused.map(({ place, test: parts }) => `${place} ${parts.join(' ... ')}`)).toEqual([]);
    expect(unusedFocus).toEqual([]);
  });

  test('that asks health checks of the other family is skipped in dual-stack cells only', async () => {
    const name = testsOf136.find((one) => one.includes('should only target nodes with endpoints')) ?? '';
    expect((await chosen('dual', 'switchyard')).skipped.find((one) => one.name === name)?.entry.reason).toContain(
      'it fails with kube-proxy too',
    );
    expect((await chosen('ipv4', 'switchyard')).run).toContain(name);
  });
});

describe('tests of upstream', () => {
  const names = [
    '[sig-network] Services should work [Conformance]',
    '[sig-network] Services [Slow] should break things',
    '[sig-network] Services should work',
    '[sig-storage] Services should work',
    '[sig-network] Services should work',
  ];
  const chosenWith = (text: object): ReturnType<typeof chooseTests> =>
    chooseTests(names, { focus, skips: readSkips('s/a.yaml', JSON.stringify([text])), cell });

  test('run when they are in focus, once each, unless they are skipped', () => {
    const { run, skipped, unused } = chosenWith(entry);
    expect(run).toEqual([names[2], names[0]]);
    expect(skipped.map(({ name, entry: { reason } }) => [name, reason])).toEqual([[names[1], entry.reason]]);
    expect(unused).toEqual([]);
  });

  test.each([
    ['a name that no test has', { ...entry, test: 'should be gone' }],
    ['a test that is out of focus', { ...entry, test: '[sig-storage] Services' }],
    ['parts in another order', { ...entry, test: ['should break', '[Slow]'] }],
  ])('make an entry unused: %s', (_, wrong) => {
    expect(chosenWith(wrong).unused.map(({ place }) => place)).toEqual([expect.stringContaining('s/a.yaml:1:')]);
  });

  test('leave entries for other cells alone', () => {
    const { run, unused } = chosenWith({ ...entry, cells: { loadBalancer: ['switchyard'] } });
    expect(run).toContain(names[1]);
    expect(unused).toEqual([]);
  });

  test('are matched literally, with anything between parts', () => {
    expect(patternOf({ test: ['[Slow] a.b', '(c)'] })).toBe(String.raw`\[Slow\] a\.b.*\(c\)`);
  });
});
