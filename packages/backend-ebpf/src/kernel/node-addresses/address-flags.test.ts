import { parseCidr, parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { addressFlags } from './node-addresses.ts';

test.each<[string, readonly string[], readonly string[], Readonly<Record<string, number>>]>([
  [
    'NodePorts answer inside their CIDRs alone',
    ['192.0.2.1', '198.51.100.1'],
    ['192.0.2.0/24'],
    { '192.0.2.1': 1, '198.51.100.1': 0 },
  ],
  ['a zero-length CIDR means all', ['192.0.2.1', '198.51.100.1'], ['0.0.0.0/0'], { '192.0.2.1': 1, '198.51.100.1': 1 }],
  ['no CIDR means none', ['192.0.2.1'], [], { '192.0.2.1': 0 }],
  ['loopback is left out', ['127.0.0.1', '127.0.0.53', '192.0.2.1'], ['0.0.0.0/0'], { '192.0.2.1': 1 }],
  ['so is it in IPv6, and link-local with it', ['::1', 'fe80::1', 'fd00::1'], ['::/0'], { 'fd00::1': 1 }],
])('%s', (_, local, cidrs, expected) => {
  const flags = addressFlags(local.map(parseIp), { nodePortCidrs: cidrs.map(parseCidr) });
  expect(Object.fromEntries(flags)).toEqual(expected);
});
