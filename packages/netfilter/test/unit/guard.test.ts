import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createPacketCounters } from '../../src/index.ts';

// Actions that vitest.setup.unit.ts blocks. None of them would do harm.

test.each<[string, () => unknown, RegExp]>([
  [
    'reach netfilter by a default that is the machine',
    () => createPacketCounters().ensure('nobodys'),
    /talk to this machine's netfilter/,
  ],
  ['run iptables', () => spawnSync('iptables-nft-restore', ['--version']), /run iptables-nft-restore on this machine/],
  ['run nft by its path', () => execFile('/usr/sbin/nft', ['--version']), /run \/usr\/sbin\/nft on this machine/],
  ['enter a namespace', () => spawnSync('nsenter', ['--version']), /run nsenter/],
  [
    'set a sysctl',
    () => writeFileSync('/proc/sys/net/nobodys', '1', { flag: 'r+' }),
    /write \/proc\/sys\/net\/nobodys/,
  ],
  [
    'set it otherwise',
    () => writeFile('/proc/sys/net/nobodys', '1', { flag: 'r+' }),
    /write \/proc\/sys\/net\/nobodys/,
  ],
])('a unit test cannot %s', (_, act, message) => {
  expect(act).toThrow(message);
});
