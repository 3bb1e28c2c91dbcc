import { type IpFamily, UsageError } from '@switchyard/core';
import { type Building, markNumber, maskedMark, type Option } from './match-options.ts';
import { badWords } from './refused.ts';
import type { MaskedMark, Target } from './rule-types.ts';

/** The targets that the fake knows, and that are no chains; undefined for any other name. */
export function startTarget(name: string, ipFamily: IpFamily): Building<Target> | undefined {
  switch (name) {
    case 'ACCEPT':
    case 'DROP':
    case 'RETURN':
      return { options: {}, finish: () => ({ kind: name }) };
    case 'REJECT':
      return reject(ipFamily);
    case 'MARK':
      return mark();
    case 'MASQUERADE':
      return masquerade();
    case 'DNAT':
      return dnat();
    default:
      return undefined;
  }
}

const known = new Set([
  'QUEUE',
  'LOG',
  'SNAT',
  'REDIRECT',
  'NFLOG',
  'NFQUEUE',
  'CT',
  'NOTRACK',
  'TCPMSS',
  'CONNMARK',
  'TPROXY',
]);

/** Throws for targets of iptables that the fake does not have: to call them missing chains would be wrong. */
export function refuseKnown(name: string): void {
  if (known.has(name)) throw new UsageError('fake-iptables.target', `the fake does not know the target ${name}`);
}

function reject(ipFamily: IpFamily): Building<Target> {
  let how = ipFamily === 'IPv4' ? 'icmp-port-unreachable' : 'icmp6-port-unreachable';
  return {
    options: { '--reject-with': { hasValue: true, take: (value) => void (how = value) } },
    finish: () => ({ kind: 'REJECT', with: how }),
  };
}

function mark(): Building<Target> {
  let given: MaskedMark | undefined;
  const option = (read: (text: string) => MaskedMark): Option => ({
    hasValue: true,
    take: (value) => void (given = read(value)),
  });
  return {
    options: {
      '--set-xmark': option(maskedMark),
      '--set-mark': option((text) => {
        const { value, mask } = maskedMark(text);
        return { value, mask: (mask | value) >>> 0 };
      }),
      '--or-mark': option((text) => ({ value: markNumber(text), mask: markNumber(text) })),
      '--xor-mark': option((text) => ({ value: markNumber(text), mask: 0 })),
      '--and-mark': option((text) => ({ value: 0, mask: ~markNumber(text) >>> 0 })),
    },
    finish: () => {
      if (given === undefined) {
        throw badWords('MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required');
      }
      return { kind: 'MARK', mark: given };
    },
  };
}

function masquerade(): Building<Target> {
  const options: string[] = [];
  const flag = (name: string): Option => ({ hasValue: false, take: () => void options.push(name) });
  return {
    options: { '--random': flag('--random'), '--random-fully': flag('--random-fully') },
    finish: () => ({ kind: 'MASQUERADE', options }),
  };
}

function dnat(): Building<Target> {
  let destination: string | undefined;
  return {
    options: { '--to-destination': { hasValue: true, take: (value) => void (destination = value) } },
    finish: () => {
      if (destination === undefined) throw badWords('DNAT: option "--to-destination" must be specified\n');
      return { kind: 'DNAT', destination };
    },
  };
}
