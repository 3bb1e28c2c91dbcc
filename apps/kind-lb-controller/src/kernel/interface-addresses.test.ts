import { type Cidr, parseCidr, parseIp } from '@switchyard/core';
import { MemoryLogger } from '@switchyard/core/testing';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { expect, test } from 'vitest';
import { newInterfaceAddresses } from './interface-addresses.ts';

const { signal } = new AbortController();
const ip = (line: string, stdout = ''): ScriptedCommand => ({
  file: 'ip',
  args: ['-n', 'lb', ...line.split(' ')],
  answer: { stdout },
});
const inLb = (line: string, answer: ScriptedCommand['answer'] = {}): ScriptedCommand => ({
  file: 'nsenter',
  args: ['--net=/run/netns/lb', '--', ...line.split(' ')],
  answer,
});
const listing = (...addresses: readonly string[]): string =>
  addresses.map((text) => `2: eth0    inet${text.includes(':') ? '6' : ''} ${text} scope global eth0\n`).join('');
const list = (...addresses: readonly string[]): ScriptedCommand =>
  ip('-o addr show dev eth0 scope global', listing('172.18.0.50/24', ...addresses));
const read = (name: string, value: string): ScriptedCommand =>
  inLb(`cat /proc/sys/net/${name}`, { stdout: `${value}\n` });
const announce = [
  ip('-o link show dev eth0', '2: eth0@if7: <UP> mtu 1500 link/ether 02:42:ac:12:00:32 brd ff:ff:ff:ff:ff:ff\n'),
  ip('link set dev eth0 address 02:42:ac:12:00:32'),
];
const settings = (arp: string, ndisc: string): readonly ScriptedCommand[] => [
  read('ipv4/conf/all/arp_notify', '0'),
  read('ipv4/conf/eth0/arp_notify', arp),
  read('ipv6/conf/all/ndisc_notify', '0'),
  read('ipv6/conf/eth0/ndisc_notify', ndisc),
];

function addresses(
  script: readonly ScriptedCommand[],
  pool: readonly Cidr[] | 'everyHostAddress' = 'everyHostAddress',
) {
  const runner = new ScriptedRunner(script);
  const logger = new MemoryLogger();
  return { ...newInterfaceAddresses({ runner, interfaceName: 'eth0', netns: 'lb', pool, logger }), runner, logger };
}

test('what is missing is added and announced', async () => {
  const { add, runner } = addresses([
    list('172.18.0.200/32'),
    ip('addr add fd00::200/128 dev eth0 nodad preferred_lft 0'),
    ...settings('1', '1'),
    ...announce,
  ]);
  await add(['172.18.0.200', 'fd00::200'].map(parseIp), signal);
  runner.assertDone();
});

test('nothing is announced when nothing was added', async () => {
  const { add, runner } = addresses([list('172.18.0.200/32')]);
  await add([parseIp('172.18.0.200')], signal);
  runner.assertDone();
});

test('where the kernel may not announce, a warning is logged, and the address is added nevertheless', async () => {
  const { add, runner, logger } = addresses([
    list(),
    ip('addr add 172.18.0.200/32 dev eth0'),
    ...settings('0', '0').slice(0, 2),
    inLb('tee /proc/sys/net/ipv4/conf/eth0/arp_notify', { exitCode: 1, stderr: 'tee: Read-only file system' }),
  ]);
  await add([parseIp('172.18.0.200')], signal);
  runner.assertDone();
  expect(logger.transitions).toEqual(['warn neighbours are not told of new addresses']);
});

test.each([
  { pool: 'everyHostAddress', removed: ['172.18.0.201/32', '192.0.2.1/32'] },
  { pool: [parseCidr('172.18.0.192/26')], removed: ['172.18.0.201/32'] },
] as const)('of $pool only what is not wanted is removed', async ({ pool, removed }) => {
  const { removeOthers, runner } = addresses(
    [
      list('172.18.0.200/32', '172.18.0.201/32', '192.0.2.1/32'),
      ...removed.map((one) => ip(`addr del ${one} dev eth0`)),
    ],
    pool,
  );
  await removeOthers([parseIp('172.18.0.200')], signal);
  runner.assertDone();
});
