import { type IpFamily, ipFamilyOf, parseIp, tryParseCidr, tryParseIp, UsageError } from '@switchyard/core';
import { type Building, type Option, startMatch } from './match-options.ts';
import { printRule } from './print-rule.ts';
import { badWords, Refused } from './refused.ts';
import type { FakeRule, Match, Target, Wanted } from './rule-types.ts';
import { refuseKnown, startTarget } from './target-options.ts';

/**
 * Reads the words behind `-A CHAIN`. The grammar is closed: what iptables would refuse throws `Refused` with its text, and what
 * only the fake does not know throws `UsageError`.
 */
export function parseRule(words: readonly string[], ipFamily: IpFamily): FakeRule {
  return new RuleReader(words, ipFamily).read();
}

const protocols: ReadonlyMap<string, string> = new Map([
  ['1', 'icmp'],
  ['6', 'tcp'],
  ['17', 'udp'],
  ['58', 'ipv6-icmp'],
  ['132', 'sctp'],
]);
const protocolNames = new Set(protocols.values());
const withPorts = new Set(['tcp', 'udp', 'sctp']);

interface Parts {
  source: Wanted<string> | undefined;
  destination: Wanted<string> | undefined;
  inInterface: Wanted<string> | undefined;
  outInterface: Wanted<string> | undefined;
  protocol: Wanted<string> | undefined;
}

class RuleReader {
  readonly #words: readonly string[];
  readonly #ipFamily: IpFamily;
  readonly #matches: Building<Match>[] = [];
  readonly #parts: Parts = {
    source: undefined,
    destination: undefined,
    inInterface: undefined,
    outInterface: undefined,
    protocol: undefined,
  };
  #matchNames: string[] = [];
  #target: Building<Target> | undefined;
  #at = 0;

  constructor(words: readonly string[], ipFamily: IpFamily) {
    this.#words = words;
    this.#ipFamily = ipFamily;
  }

  read(): FakeRule {
    while (this.#at < this.#words.length) this.#option();
    const matches = this.#matches.map((one) => one.finish());
    const target = this.#target?.finish();
    this.#checkPorts(target);
    const rule = { ...this.#parts, matches, target };
    return { ...rule, text: printRule(rule, this.#ipFamily) };
  }

  #option(): void {
    const isNegated = this.#words[this.#at] === '!';
    if (isNegated) this.#at++;
    const word = this.#next('');
    const own = this.#ownOption(word);
    if (own === undefined) return this.#extensionOption(word, isNegated);
    own(this.#next(word), isNegated);
  }

  #ownOption(word: string): ((value: string, isNegated: boolean) => void) | undefined {
    const parts = this.#parts;
    switch (word) {
      case '-s':
      case '--source':
        return (value, isNegated) => void (parts.source = this.#address(value, isNegated));
      case '-d':
      case '--destination':
        return (value, isNegated) => void (parts.destination = this.#address(value, isNegated));
      case '-i':
      case '--in-interface':
        return (value, isNegated) => void (parts.inInterface = interfaceName(value, isNegated));
      case '-o':
      case '--out-interface':
        return (value, isNegated) => void (parts.outInterface = interfaceName(value, isNegated));
      case '-p':
      case '--protocol':
        return (value, isNegated) => void (parts.protocol = protocolOf(value, isNegated));
      case '-m':
      case '--match':
        return (value) => this.#startMatch(value);
      case '-j':
      case '--jump':
        return (value) => void (this.#target = this.#targetOf(value));
      case '-g':
      case '--goto':
        return (chain) => void (this.#target = chainTarget(chain, true));
      default:
        return undefined;
    }
  }

  #extensionOption(word: string, isNegated: boolean): void {
    if (!word.startsWith('-')) throw new Refused('bare', `Bad argument \`${word}'`);
    const option = this.#find(word) ?? this.#implicitPorts(word);
    if (option === undefined) throw badWords(`unknown option "${word}"`);
    option.take(option.hasValue ? this.#next(word) : '', isNegated);
  }

  /** The target's own, or those of the match named last that has it. */
  #find(word: string): Option | undefined {
    const holders = [this.#target, ...this.#matches.toReversed()];
    return holders.find((one) => one !== undefined && Object.hasOwn(one.options, word))?.options[word];
  }

  /** `-p tcp --dport 80` loads the match of the protocol. */
  #implicitPorts(word: string): Option | undefined {
    const protocol = this.#parts.protocol?.value ?? '';
    if (!withPorts.has(protocol) || this.#matchNames.includes(protocol)) return undefined;
    if (startMatch(protocol)?.options[word] === undefined) return undefined;
    this.#startMatch(protocol);
    return this.#find(word);
  }

  #startMatch(name: string): void {
    const match = startMatch(name);
    if (match === undefined) throw badWords(`Couldn't load match \`${name}':No such file or directory\n`);
    this.#matches.push(match);
    this.#matchNames = [...this.#matchNames, name];
  }

  #targetOf(name: string): Building<Target> {
    refuseKnown(name);
    return startTarget(name, this.#ipFamily) ?? chainTarget(name, false);
  }

  #checkPorts(target: Target | undefined): void {
    if (target?.kind !== 'DNAT') return;
    const [, bracketed, plain = '', port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(target.destination) ?? [];
    const { protocol } = this.#parts;
    if (port !== undefined && !withPorts.has(protocol?.value ?? '')) {
      throw badWords('Need TCP, UDP, SCTP or DCCP with port specification');
    }
    const address = bracketed ?? (this.#ipFamily === 'IPv6' ? target.destination : plain);
    const ip = tryParseIp(address);
    if (ip === undefined || ipFamilyOf(ip) !== this.#ipFamily) throw badWords(`Bad IP address "${address}"\n`);
  }

  #address(text: string, isNegated: boolean): Wanted<string> | undefined {
    if (text.includes(','))
      throw new UsageError('fake-iptables.address', `the fake does not know lists such as ${text}`);
    const host = tryParseIp(text.split('/')[0] ?? '');
    const full = text.includes('/') ? text : `${text}/${this.#ipFamily === 'IPv4' ? 32 : 128}`;
    const cidr = tryParseCidr(full);
    if (host === undefined || cidr === undefined || ipFamilyOf(parseIp(host)) !== this.#ipFamily) {
      throw badWords(`host/network \`${text.split('/')[0]}' not found`);
    }
    return cidr.endsWith('/0') && !isNegated ? undefined : { value: cidr, isNegated };
  }

  #next(option: string): string {
    const word = this.#words[this.#at++];
    if (word === undefined) throw badWords(`option "${option}" requires an argument`);
    return word;
  }
}

function chainTarget(chain: string, isGoto: boolean): Building<Target> {
  return { options: {}, finish: () => ({ kind: 'chain', chain, isGoto }) };
}

function interfaceName(value: string, isNegated: boolean): Wanted<string> {
  if (value.length > 15) throw badWords(`interface name \`${value}' must be shorter than 16 characters`);
  return { value, isNegated };
}

function protocolOf(text: string, isNegated: boolean): Wanted<string> | undefined {
  const value = protocols.get(text) ?? text.toLowerCase();
  if (value === 'all') return undefined;
  if (!protocolNames.has(value)) throw badWords(`unknown protocol "${text}" specified`);
  return { value, isNegated };
}
