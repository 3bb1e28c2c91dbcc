import { expect, test } from 'vitest';
import { casesOf } from '../sequences/support/sequence-context.ts';
import { straySegments } from './stray-segments.ts';

test('there is one for each family, and it needs pods that send packets made by hand', () => {
  const cases = casesOf(straySegments, { dataplane: 'iptables' });
  expect(cases.map(({ id, families, needs, notFor }) => ({ id, families, needs, notFor }))).toEqual([
    { id: 'sequence/stray-segments/ipv4', families: 'IPv4', needs: ['rawPackets'], notFor: undefined },
    { id: 'sequence/stray-segments/ipv6', families: 'IPv6', needs: ['rawPackets'], notFor: undefined },
  ]);
});

test.each(['nftables', 'ebpf'] as const)('%s does not promise it', (dataplane) => {
  expect(casesOf(straySegments, { dataplane }).map(({ notFor }) => notFor)).toEqual([
    `not for ${dataplane}: only the iptables mode has a rule against them`,
    `not for ${dataplane}: only the iptables mode has a rule against them`,
  ]);
});
