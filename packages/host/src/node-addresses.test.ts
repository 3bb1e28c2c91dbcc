import { parseCidr, parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { listenAddresses, nodeAddresses, nodePortAddresses } from './node-addresses.ts';

const lo = [{ address: '127.0.0.1' }, { address: '::1' }];

describe('nodeAddresses', () => {
  test.each([
    ['loopback is left out', { lo }, []],
    ['another address on the loopback interface counts', { lo: [...lo, { address: '192.0.2.7' }] }, ['192.0.2.7']],
    ['a link-local address is left out', { eth0: [{ address: 'fe80::1' }] }, []],
    ['an interface without addresses is no error', { eth0: undefined }, []],
    [
      'all interfaces count, sorted by bytes, IPv4 first',
      {
        lo,
        eth1: [{ address: 'fd00::2' }, { address: '192.0.2.10' }],
        eth0: [{ address: '192.0.2.9' }],
      },
      ['192.0.2.9', '192.0.2.10', 'fd00::2'],
    ],
    [
      'an address on two interfaces counts once',
      { a: [{ address: '192.0.2.1' }], b: [{ address: '192.0.2.1' }] },
      ['192.0.2.1'],
    ],
  ])('%s', (_, interfaces, expected) => {
    expect(nodeAddresses(interfaces)).toEqual(expected);
  });

  test('the machine itself can be asked', () => {
    expect(nodeAddresses().every((ip) => !ip.startsWith('127.'))).toBe(true);
  });
});

test('listenAddresses has the loopback addresses, too', () => {
  const interfaces = { lo, eth0: [{ address: 'fe80::1' }, { address: '192.0.2.7' }] };
  expect(listenAddresses(interfaces)).toEqual(['127.0.0.1', '192.0.2.7', '::1']);
});

describe('nodePortAddresses', () => {
  const addresses = ['192.0.2.1', '198.51.100.1', 'fd00::1'].map(parseIp);
  test.each([
    ['a zero-length CIDR means all of the family', ['0.0.0.0/0'], ['192.0.2.1', '198.51.100.1']],
    ['no CIDR means none', [], []],
    ['one CIDR selects', ['192.0.2.0/24'], ['192.0.2.1']],
    ['a CIDR of the other family selects nothing', ['fd00::/8'], []],
  ])('%s', (_, cidrs, expected) => {
    expect(nodePortAddresses(addresses, 'IPv4', cidrs.map(parseCidr))).toEqual(expected);
  });
});
