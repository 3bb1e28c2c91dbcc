import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hostIpFamilies } from './node-addresses.ts';

const loopback = '00000000000000000000000000000001 01 80 10 80 lo\n';
test.each([
  ['a kernel without IPv6 has no list of IPv6 addresses', undefined, undefined, ['IPv4']],
  ['an empty list: no interface is up yet', '', '0', ['IPv4', 'IPv6']],
  ['a kernel without the setting that disables IPv6', '', undefined, ['IPv4', 'IPv6']],
  ['IPv6 is disabled for all interfaces', '', '1', ['IPv4']],
  ['IPv6 was disabled for all, and one has it back', loopback, '1', ['IPv4', 'IPv6']],
  ['everything as usual', loopback, '0', ['IPv4', 'IPv6']],
])('%s', (_, addresses, disabled, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const all = join(folder, 'net/ipv6/conf/all');
  mkdirSync(all, { recursive: true });
  if (addresses !== undefined) writeFileSync(join(folder, 'if_inet6'), addresses);
  if (disabled !== undefined) writeFileSync(join(all, 'disable_ipv6'), `${disabled}\n`);
  expect(hostIpFamilies({ net: folder, sysctl: folder })).toEqual(expected);
});
