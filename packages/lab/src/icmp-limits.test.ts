import { expect, test } from 'vitest';
import { icmpErrorsHeldBack } from './probe.ts';

const snmp = `Ip: Forwarding DefaultTTL
Ip: 1 64
Icmp: InMsgs OutMsgs OutRateLimitGlobal OutRateLimitHost OutDestUnreachs
Icmp: 9 8 2 5 8
IcmpMsg: OutType3
IcmpMsg: 8
`;
const snmp6 = `Icmp6OutMsgs                    \t4
Icmp6OutRateLimitHost           \t7
Icmp6InType128                  \t1
`;

test.each([
  ['both families', snmp + snmp6, 14],
  ['IPv4 alone', snmp, 7],
  ['IPv6 alone', snmp6, 7],
  ['a kernel before 6.3', 'Icmp: InMsgs OutMsgs\nIcmp: 9 8\nIcmp6OutMsgs 4\n', undefined],
  ['nothing', '', undefined],
] as const)('errors that were held back are counted: %s', (_, text, count) => {
  expect(icmpErrorsHeldBack(text)).toBe(count);
});
