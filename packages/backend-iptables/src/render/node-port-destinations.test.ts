import { parseCidr } from '@switchyard/core';
import { expect, test } from 'vitest';
import { nodePortDestinations } from './node-port-destinations.ts';

const local = '-m addrtype --dst-type LOCAL';

test.each([
  ['all addresses but loopback', 'IPv4', ['0.0.0.0/0'], false, [['! -d 127.0.0.0/8', local]]],
  ['all addresses', 'IPv4', ['0.0.0.0/0'], true, [['', local]]],
  ['in IPv6 never loopback', 'IPv6', ['::/0'], false, [['! -d ::1/128', local]]],
  ['nowhere', 'IPv4', [], true, []],
  [
    'some addresses, loopback left out',
    'IPv4',
    ['192.0.2.0/24', '127.0.0.0/8', '127.0.0.1/32', '10.0.0.1/32'],
    false,
    [
      ['-d 192.0.2.0/24', local],
      ['-d 10.0.0.1/32', local],
    ],
  ],
  ['loopback alone', 'IPv4', ['127.0.0.1/32'], true, [['-d 127.0.0.1/32', local]]],
  [
    'a range that loopback lies in',
    'IPv4',
    ['126.0.0.0/7'],
    false,
    [['-d 126.0.0.0/7', `${local} -m iprange ! --dst-range 127.0.0.0-127.255.255.255`]],
  ],
  ['the same in IPv6', 'IPv6', ['::/64'], false, [['-d ::/64', `${local} -m iprange ! --dst-range ::1-::1`]]],
] as const)('NodePorts answer on %s', (_, ipFamily, cidrs, localhostNodePorts, expected) => {
  const destinations = nodePortDestinations({ ipFamily, nodePortCidrs: cidrs.map(parseCidr), localhostNodePorts });
  expect(destinations.map(({ address, type }) => [address, type])).toEqual(expected);
});
