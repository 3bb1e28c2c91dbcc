import type { V1ServiceSpec } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import type { ServiceRecord } from '../model/records/records.ts';
import { readCidr, readIp, recordFromService } from './to-records.ts';

function recordOf(spec: V1ServiceSpec): ServiceRecord {
  const projected = recordFromService({ metadata: { namespace: 'shop', name: 'cart' }, spec });
  if (projected.status !== 'record') throw new Error(`ignored: ${projected.reason}`);
  return projected.record;
}

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['010.000.00.01', '10.0.0.1'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.007', '192.0.2.7'],
  ['FD00:0::1', 'fd00::1'],
  ['::ffff:c000:207', undefined],
  ['0x10.0.0.1', undefined],
  ['256.0.0.1', undefined],
  ['', undefined],
])('the address %j of a stored object is %j', (written, expected) => {
  expect(readIp(written)).toBe(expected);
});

test.each([
  [' 010.0.0.5/08 ', '10.0.0.0/8'],
  ['2001:DB8::5/64', '2001:db8::/64'],
  ['::ffff:192.0.2.0/120', undefined],
])('the CIDR %j of a stored object is %j', (written, expected) => {
  expect(readCidr(written)).toBe(expected);
});

test('unreadable source ranges allow no source; readable ones apply alone', () => {
  const rangesOf = (...written: string[]): readonly string[] =>
    recordOf({ loadBalancerSourceRanges: written }).loadBalancerSourceRanges;
  expect(rangesOf('nonsense', '::ffff:1.2.3.0/120')).toEqual(['0.0.0.0/32', '::/128']);
  expect(rangesOf('nonsense', '192.0.2.0/24')).toEqual(['192.0.2.0/24']);
  expect([rangesOf(), rangesOf('', ' ')]).toEqual([[], []]);
});

test('a dual-stack Service with addresses of an old object keeps both families', () => {
  const record = recordOf({ clusterIPs: ['010.96.0.1', 'FD00:0::1'], externalIPs: ['::ffff:192.0.2.7'] });
  expect([record.clusterIps, record.ipFamilies, record.externalIps]).toEqual([
    ['10.96.0.1', 'fd00::1'],
    ['IPv4', 'IPv6'],
    ['192.0.2.7'],
  ]);
});
