import { UsageError } from '@switchyard/core';
import { badWords } from './refused.ts';
import { conntrackStates, type Match, type RecentMatch, type Wanted } from './rule-types.ts';

/** Effect of one option of a match or target. */
export interface Option {
  /** Whether a word follows. */
  readonly hasValue: boolean;
  take(value: string, isNegated: boolean): void;
}

/** A match or target whose options are being read. */
export interface Building<T> {
  readonly options: Readonly<Record<string, Option>>;
  /** Throws `Refused` when something is missing. */
  finish(): T;
}

/** The matches that the fake knows; undefined for any other. */
export function startMatch(name: string): Building<Match> | undefined {
  switch (name) {
    case 'comment':
      return oneValue('--comment', (text) => ({ kind: 'comment', text: text.value }));
    case 'tcp':
    case 'udp':
    case 'sctp':
      return ports(name);
    case 'mark':
      return oneValue('--mark', ({ value, isNegated }) => ({
        kind: 'mark',
        mark: { value: maskedMark(value), isNegated },
      }));
    case 'conntrack':
      return oneValue('--ctstate', ({ value, isNegated }) => ({
        kind: 'conntrack',
        states: { value: states(value), isNegated },
      }));
    case 'addrtype':
      return addressTypes();
    case 'statistic':
      return statistic();
    case 'recent':
      return recent();
    case 'nfacct':
      return oneValue('--nfacct-name', ({ value }) => ({ kind: 'nfacct', name: value }));
    default:
      return undefined;
  }
}

/** `value/mask` or `value`, in any notation of C. */
export function maskedMark(text: string): { readonly value: number; readonly mask: number } {
  const [value = '', mask] = text.split('/');
  return { value: markNumber(value), mask: mask === undefined ? 0xffff_ffff : markNumber(mask) };
}

/** 32 bits. */
export function markNumber(text: string): number {
  const number = /^(?:0x[0-9a-f]{1,8}|[0-9]+)$/i.test(text) ? Number(text) : Number.NaN;
  if (!(number <= 0xffff_ffff)) throw badWords(`mark: bad mark value for option "--mark", or out of range.\n`);
  return number;
}

function oneValue(option: string, make: (given: Wanted<string>) => Match): Building<Match> {
  let given: Wanted<string> | undefined;
  return {
    options: { [option]: { hasValue: true, take: (value, isNegated) => void (given = { value, isNegated }) } },
    finish: () => {
      if (given === undefined)
        throw badWords(`${make({ value: '0', isNegated: false }).kind}: option "${option}" must be specified\n`);
      return make(given);
    },
  };
}

function ports(kind: 'tcp' | 'udp' | 'sctp'): Building<Match> {
  let sourcePort: Wanted<string> | undefined;
  let destinationPort: Wanted<string> | undefined;
  const source: Option = {
    hasValue: true,
    take: (value, isNegated) => void (sourcePort = { value: portRange(value), isNegated }),
  };
  const destination: Option = {
    hasValue: true,
    take: (value, isNegated) => void (destinationPort = { value: portRange(value), isNegated }),
  };
  return {
    options: {
      '--sport': source,
      '--source-port': source,
      '--dport': destination,
      '--destination-port': destination,
    },
    finish: () => ({ kind, sourcePort, destinationPort }),
  };
}

/** `80` or `80:90`. Names of services are not known. */
function portRange(text: string): string {
  for (const port of text.split(':')) {
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw badWords(`invalid port/service \`${port}' specified`);
  }
  return text;
}

function states(text: string): readonly string[] {
  const given = text.split(',');
  const unknown = given.find((state) => !conntrackStates.includes(state));
  if (unknown !== undefined) throw badWords(`Bad ctstate "${unknown}"`);
  return conntrackStates.filter((state) => given.includes(state));
}

const addressKinds = new Set([
  'UNSPEC',
  'UNICAST',
  'LOCAL',
  'BROADCAST',
  'ANYCAST',
  'MULTICAST',
  'BLACKHOLE',
  'UNREACHABLE',
  'PROHIBIT',
]);

function addressTypes(): Building<Match> {
  const given: { source?: Wanted<string>; destination?: Wanted<string> } = {};
  const option = (side: 'source' | 'destination'): Option => ({
    hasValue: true,
    take: (value, isNegated) => {
      if (!addressKinds.has(value)) throw badWords(`addrtype: bad type "${value}"`);
      given[side] = { value, isNegated };
    },
  });
  return {
    options: { '--src-type': option('source'), '--dst-type': option('destination') },
    finish: () => {
      if (given.source === undefined && given.destination === undefined) {
        throw badWords('addrtype: you must specify --src-type or --dst-type');
      }
      return { kind: 'addrtype', source: given.source, destination: given.destination };
    },
  };
}

function statistic(): Building<Match> {
  let probability: number | undefined;
  let mode: string | undefined;
  return {
    options: {
      '--mode': { hasValue: true, take: (value) => void (mode = value) },
      '--probability': {
        hasValue: true,
        take: (value) => {
          const number = Number(value);
          if (!(number >= 0 && number <= 1)) {
            throw badWords('statistic: bad value for option "--probability", or out of range (0-1).\n');
          }
          probability = Math.round(number * 2 ** 31);
        },
      },
    },
    finish: () => {
      if (mode !== 'random')
        throw new UsageError('fake-iptables.statistic', `the fake knows no statistic mode ${mode}`);
      if (probability === undefined) throw badWords('statistic: option "--probability" must be specified\n');
      return { kind: 'statistic', probability };
    },
  };
}

function recent(): Building<Match> {
  let action: RecentMatch['action'] | undefined;
  let seconds: number | undefined;
  let reap = false;
  let name = 'DEFAULT';
  const act = (value: RecentMatch['action']['value']): Option => ({
    hasValue: false,
    take: (_, isNegated) => void (action = { value, isNegated }),
  });
  return {
    options: {
      '--set': act('set'),
      '--rcheck': act('rcheck'),
      '--seconds': { hasValue: true, take: (value) => void (seconds = Number(value)) },
      '--reap': { hasValue: false, take: () => void (reap = true) },
      '--name': { hasValue: true, take: (value) => void (name = value) },
      '--mask': { hasValue: true, take: allOfAddress },
      '--rsource': { hasValue: false, take: () => undefined },
    },
    finish: () => {
      if (action === undefined) {
        throw badWords("recent: you must specify one of `--set', `--rcheck' `--update' or `--remove'");
      }
      if (reap && seconds === undefined) throw badWords('recent: option "--reap" requires option "--seconds".\n');
      return { kind: 'recent', action, seconds, reap, name };
    },
  };
}

function allOfAddress(mask: string): void {
  if (mask !== '255.255.255.255' && !/^(ffff:){7}ffff$/.test(mask)) {
    throw new UsageError('fake-iptables.recent', `the fake keeps clients by their whole address, not by ${mask}`);
  }
}
