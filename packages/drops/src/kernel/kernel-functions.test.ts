import { describe, expect, test } from 'vitest';
import { parseKernelFunctions } from './kernel-functions.ts';

const kallsyms = `ffffffff81000000 T _text
ffffffff81000000 t tcp_v4_rcv_early
ffffffff81001000 T tcp_v4_rcv
ffffffff81001800 T tcp_v6_rcv
ffffffff81002000 T ip_rcv
ffffffff81002100 t ip_rcv_finish
ffffffff81003000 T ip_local_deliver
ffffffff81003100 T ip_forward
ffffffff81003200 T __ip_local_out
ffffffff81003300 W ip_output
ffffffff81003400 w ip6_output
ffffffff81003500 T ip6_input
ffffffff81003600 T nf_hook_slow
ffffffff81003700 t ip_error
ffffffff81003800 t neigh_timer_handler
ffffffff81003900 D dst_discard
ffffffff81003980 T br_forward
ffffffff81003a00 T kfree_skb
ffffffffc0200000 t nft_do_chain\t[nf_tables]
ffffffffc0201000 t nft_chain_filter\t[nf_tables]
ffffffffc0300000 t ipt_do_table\t[ip_tables]
ffffffffc0010000 t ip6t_do_table\t[ip6_tables]
ffffffffc0018000 t ndisc_error_report`;

/** Addresses inside the functions, such as a call leaves on the stack. */
const inside = {
  tcp: 0xffffffff810017ffn,
  rcv: 0xffffffff81002010n,
  rcvFinish: 0xffffffff81002100n,
  deliver: 0xffffffff81003000n,
  forward: 0xffffffff81003110n,
  out: 0xffffffff81003210n,
  output: 0xffffffff81003310n,
  output6: 0xffffffff81003410n,
  input6: 0xffffffff81003510n,
  hook: 0xffffffff81003610n,
  error: 0xffffffff81003710n,
  neighbour: 0xffffffff81003810n,
  data: 0xffffffff81003910n,
  bridge: 0xffffffff81003990n,
  free: 0xffffffff81003a10n,
  chain: 0xffffffffc0200fffn,
  chainFilter: 0xffffffffc0201000n,
} as const;

const { placeOf, speaking } = parseKernelFunctions(kallsyms);

describe('the place of a stack', () => {
  test.each([
    ['a rule before routing', ['chain', 'chainFilter', 'hook', 'rcv'], 'rule', 'prerouting'],
    ['a rule on the way in', ['chain', 'hook', 'deliver', 'rcvFinish', 'rcv'], 'rule', 'input'],
    ['a rule on the way in, IPv6', ['chain', 'hook', 'input6'], 'rule', 'input'],
    ['a rule on the way through', ['chain', 'hook', 'forward', 'deliver', 'rcv'], 'rule', 'forward'],
    ['a rule on the way out of a socket', ['chain', 'hook', 'out'], 'rule', 'output'],
    ['a hook after routing', ['hook', 'output', 'rcv'], 'hook', 'postrouting'],
    ['a hook after routing, IPv6', ['hook', 'output6'], 'hook', 'postrouting'],
    ['TCP', ['free', 'tcp', 'deliver'], 'tcp', 'input'],
    ['a route that leads nowhere', ['free', 'error', 'rcvFinish', 'rcv'], 'route', 'prerouting'],
    ['a neighbour', ['neighbour'], 'neighbour', undefined],
    ['a hook with a rule further out', ['hook', 'chain', 'rcv'], 'hook', 'prerouting'],
    ['a bridge', ['bridge', 'hook', 'rcv'], 'bridge', 'prerouting'],
    ['a function at a hook', ['rcvFinish', 'rcv'], 'kernel', 'prerouting'],
    ['a rule without a hook below it', ['chain'], 'rule', undefined],
    ['no known function', ['free', 'rcvFinish', 'data', 'chainFilter'], 'kernel', undefined],
    ['an empty stack', [], 'kernel', undefined],
  ] as const)('%s', (_, names, by, at) => {
    expect(placeOf(names.map((name) => inside[name]))).toEqual({ by, at });
  });
});

test.each([
  ['its first byte', 0xffffffff81001000n, 'tcp'],
  ['its last byte', 0xffffffff810017ffn, 'tcp'],
  ['the byte before it', 0xffffffff81000fffn, 'kernel'],
])('a function contains %s or not', (_, address, by) => {
  expect(placeOf([address]).by).toBe(by);
});

test('a function of a module has the name without the suffix', () => {
  expect(placeOf([0xffffffffc0200000n]).by).toBe('rule');
});

test.each([
  ['followed by an entry of lower address', 0xffffffffc0300000n, 'rule'],
  ['at the end of a text without a newline', 0xffffffffc0018000n, 'neighbour'],
])('a function %s has a limited length', (_, start, by) => {
  expect(placeOf([start + 0x3fffn]).by).toBe(by);
  expect(placeOf([start + 0x4000n]).by).toBe('kernel');
});

test('a function that is followed by a distant entry has a limited length', () => {
  const { placeOf: placeOfFew } = parseKernelFunctions('ffffffff81001000 T ip_error\nffffffff82000000 T other\n');
  expect(placeOfFew([0xffffffff81004fffn]).by).toBe('route');
  expect(placeOfFew([0xffffffff81005000n]).by).toBe('kernel');
});

test('only functions that drop without a reason are speaking', () => {
  expect(speaking).toEqual([
    { name: 'tcp_v4_rcv', start: 0xffffffff81001000n, end: 0xffffffff81001800n },
    { name: 'tcp_v6_rcv', start: 0xffffffff81001800n, end: 0xffffffff81002000n },
    { name: 'ip_error', start: 0xffffffff81003700n, end: 0xffffffff81003800n },
    { name: 'neigh_timer_handler', start: 0xffffffff81003800n, end: 0xffffffff81003900n },
    { name: 'br_forward', start: 0xffffffff81003980n, end: 0xffffffff81003a00n },
    { name: 'ndisc_error_report', start: 0xffffffffc0018000n, end: 0xffffffffc001c000n },
  ]);
});

test.each([
  ['hidden', kallsyms.replaceAll(/^[0-9a-f]{16}/gm, '0000000000000000')],
  ['missing', ''],
])('no place is found where addresses are %s', (_, text) => {
  const hidden = parseKernelFunctions(text);
  expect(hidden.speaking).toEqual([]);
  expect(hidden.placeOf([0n, ...Object.values(inside)])).toEqual({ at: undefined, by: 'kernel' });
});
