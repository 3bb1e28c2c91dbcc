import { parseScenario } from '@switchyard/scenarios';
import { describe, expect, test } from 'vitest';
import type { FamilyCell } from '../model/case.ts';
import { selectCases } from './select-cases.ts';

const text = `name: n
why: w
given:
  services:
    - { name: shop/cart, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
steps:
  - { from: pod, to: '10.96.0.10:80/TCP', expect: reject }
`;
const own = parseScenario('cart', text, 'dir/cart.yaml');
const select = (
  { globs = [], tags = [] }: { readonly globs?: readonly string[]; readonly tags?: readonly string[] },
  scenarios = [own],
  cell: FamilyCell = 'dual',
): readonly string[] => selectCases({ dataplane: 'iptables', cell }, { scenarios, globs, tags }).map(({ id }) => id);

describe('selectCases', () => {
  test('runs own scenarios alone', () => {
    expect(select({})).toEqual(['scenario/cart/ipv4', 'scenario/cart/ipv6']);
    expect(select({}, [own], 'ipv6')).toEqual(['scenario/cart/ipv6']);
  });

  test('adds what globs and tags choose', () => {
    expect(select({ globs: ['scenario/etp-local/ipv4'] })).toEqual([
      'scenario/cart/ipv4',
      'scenario/cart/ipv6',
      'scenario/etp-local/ipv4',
    ]);
    expect(select({ tags: ['smoke'] })).toContain('scenario/cluster-ip/ipv4');
  });

  test('without own scenarios, chooses of the catalogue', () => {
    expect(select({ globs: ['scenario/etp-local/*'] }, [])).toEqual([
      'scenario/etp-local/ipv4',
      'scenario/etp-local/ipv6',
    ]);
  });

  test('lets an own scenario take the place of a case with its id', () => {
    const cases = selectCases(
      { dataplane: 'nftables', cell: 'dual' },
      { scenarios: [parseScenario('etp-local', text)], globs: ['scenario/etp-local/*'], tags: [] },
    );
    expect(cases.map(({ id, title }) => `${id}: ${title}`)).toEqual([
      'scenario/etp-local/ipv4: n',
      'scenario/etp-local/ipv6: n',
    ]);
  });

  test('refuses a scenario that has nothing for the families of the cluster', () => {
    const v4 = parseScenario('cart', text.replace('why: w', 'why: w\nipFamilies: [IPv4]'));
    expect(() => select({}, [v4], 'ipv6')).toThrow(
      /^the scenario cart has no case for --ip-family ipv6: it is for IPv4$/,
    );
  });

  test('refuses an address outside the address plan with the file and its line', () => {
    const wrong = parseScenario('cart', text.replace("'10.96.0.10:80", "'192.0.2.1:80"), 'dir/cart.yaml');
    expect(() => select({}, [wrong])).toThrow(
      /^dir\/cart\.yaml:7: steps\.0\.to: 192\.0\.2\.1 is not in the address plan/,
    );
  });
});
