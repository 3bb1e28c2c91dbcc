import { expect, test } from 'vitest';
import { ScriptedSocket, type Scripted } from '@switchyard/native/testing';
import { createPacketCounters, type PacketCounters } from './packet-counters.ts';

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'));
/** The kernel's answer to a request with NLM_F_ACK: an errno, 0 for success. */
const answer = (errno: number): Uint8Array => {
  const code = (-errno >>> 0)
    .toString(16)
    .padStart(8, '0')
    .replace(/(..)(..)(..)(..)/, '$4$3$2$1');
  return bytesOf(`24000000 0200 0001 01000000 cf7e0000 ${code} 1c000000 00070506 01000000 00000000`);
};
/** Recorded on kernel 6.18, x64; the counts are made up. */
const two =
  bytesOf(`58000000000702000100 0000cf7e000000000000 22000100 63745f73746174655f696e76616c69645f64726f707065645f706b747300
  0000 0c000200 0000000000000007 0c000300 0000000100000002 08000400 00000003
  3c0000000007020001000000cf7e000000000000 08000100 6f6e6500 0c000200 0000000000000000 0c000300 0000000000000000
  08000400 00000001`);
const done = bytesOf('140000000300020001000000cf7e000000000000');

function bench(...script: readonly Scripted[]): { counters: PacketCounters; sent: () => readonly string[] } {
  const sockets: ScriptedSocket[] = [];
  const counters = createPacketCounters({
    netns: '/run/netns/x',
    open: (options) => {
      expect(options).toEqual({ protocol: 'netfilter', netns: '/run/netns/x' });
      const socket = new ScriptedSocket(options, script);
      sockets.push(socket);
      return socket;
    },
  });
  return { counters, sent: () => sockets.flatMap(({ sent, isClosed }) => (isClosed ? sent : ['open'])) };
}

test('a counter is made, and one that is there is left alone', () => {
  for (const errno of [0, 17]) {
    const { counters, sent } = bench(answer(errno));
    counters.ensure('one');
    expect(sent()).toEqual(['1c00000000070506010000000000000000000000080001006f6e6500']);
  }
});

test('counters are read with their counts', () => {
  const { counters, sent } = bench(two, done);
  expect(counters.read()).toEqual(
    new Map([
      ['ct_state_invalid_dropped_pkts', { packets: 7, bytes: 4_294_967_298 }],
      ['one', { packets: 0, bytes: 0 }],
    ]),
  );
  expect(sent()).toEqual(['1400000001070103010000000000000000000000']);
});

test.each<[string, number, RegExp]>([
  [
    'without the right',
    1,
    /^cannot make the packet counter one: nfnetlink_acct failed with EPERM; run with CAP_NET_ADMIN$/,
  ],
  [
    'with a kernel that has none',
    22,
    /EINVAL; the kernel needs CONFIG_NETFILTER_NETLINK_ACCT; .* modprobe nfnetlink_acct$/,
  ],
])('%s it says what to do', (_, errno, message) => {
  expect(() => bench(answer(errno)).counters.ensure('one')).toThrow(message);
  expect(() => bench(answer(errno)).counters.read()).toThrow(/^cannot read the packet counters: /);
});

test.each(['', 'x'.repeat(32)])('a name that the kernel would cut is refused: %j', (name) => {
  expect(() => bench().counters.ensure(name)).toThrow('cannot name a counter: 1 to 31 characters can');
});
