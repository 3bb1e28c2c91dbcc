import { assertNever, type IpFamily } from '@switchyard/core';
import { type FakeRule, type MaskedMark, type Match, type Target, type Wanted } from './rule-types.ts';

/** The rule as `iptables-save` 1.8.9 prints it, in both variants: addresses first, matches in the order given, target last. */
export function printRule(rule: Omit<FakeRule, 'text'>, ipFamily: IpFamily): string {
  return [
    ...wanted('-s', rule.source),
    ...wanted('-d', rule.destination),
    ...wanted('-i', rule.inInterface),
    ...wanted('-o', rule.outInterface),
    ...wanted('-p', rule.protocol),
    ...rule.matches.flatMap((match) => ['-m', match.kind, ...matchWords(match, ipFamily)]),
    ...targetWords(rule.target),
  ].join(' ');
}

/** A comment as iptables quotes it: not at all where it is of letters, digits, `_` and `-` only. */
export function quoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `"${text.replace(/["'\\]/g, '\\$&')}"`;
}

function wanted<T>(option: string, one: Wanted<T> | undefined, print: (value: T) => string = String): string[] {
  if (one === undefined) return [];
  return [...(one.isNegated ? ['!'] : []), option, print(one.value)];
}

function matchWords(match: Match, ipFamily: IpFamily): readonly string[] {
  switch (match.kind) {
    case 'comment':
      return ['--comment', quoted(match.text)];
    case 'tcp':
    case 'udp':
    case 'sctp':
      return [...wanted('--sport', match.sourcePort), ...wanted('--dport', match.destinationPort)];
    case 'mark':
      return wanted('--mark', match.mark, markText);
    case 'conntrack':
      return wanted('--ctstate', match.states, (states) => states.join(','));
    case 'addrtype':
      return [...wanted('--src-type', match.source), ...wanted('--dst-type', match.destination)];
    case 'statistic':
      return ['--mode', 'random', '--probability', (match.probability / 2 ** 31).toFixed(11)];
    case 'recent':
      return [
        ...(match.action.isNegated ? ['!'] : []),
        `--${match.action.value}`,
        ...(match.seconds === undefined ? [] : ['--seconds', String(match.seconds)]),
        ...(match.reap ? ['--reap'] : []),
        '--name',
        match.name,
        '--mask',
        ipFamily === 'IPv4' ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
        '--rsource',
      ];
    case 'nfacct':
      return ['--nfacct-name', '', match.name]; // there are two blanks in the real one, too
    default:
      return assertNever(match);
  }
}

function targetWords(target: Target | undefined): readonly string[] {
  if (target === undefined) return [];
  switch (target.kind) {
    case 'chain':
      return [target.isGoto ? '-g' : '-j', target.chain];
    case 'REJECT':
      return ['-j', 'REJECT', '--reject-with', target.with];
    case 'MARK':
      return ['-j', 'MARK', '--set-xmark', `${hex(target.mark.value)}/${hex(target.mark.mask)}`];
    case 'MASQUERADE':
      return ['-j', 'MASQUERADE', ...target.options];
    case 'DNAT':
      return ['-j', 'DNAT', '--to-destination', target.destination];
    default:
      return ['-j', target.kind];
  }
}

function markText({ value, mask }: MaskedMark): string {
  return mask === 0xffff_ffff ? hex(value) : `${hex(value)}/${hex(mask)}`;
}

function hex(value: number): string {
  return `0x${(value >>> 0).toString(16)}`;
}
