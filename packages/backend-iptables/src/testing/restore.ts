import type { IpFamily } from '@switchyard/core';
import { UsageError } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/host';
import { builtInChains, type FakeEntry, type FakeTable } from './fake-table.ts';
import { parseRule } from './parse-rule.ts';
import { badWords, chainExists, indexTooBig, noSuchChain, noSuchRule, Refused } from './refused.ts';
import type { FakeRule } from './rule-types.ts';
import { splitWords } from './split-words.ts';

/** What a restore is done to. */
export interface RestoreSubject {
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
  /** How the program calls itself. */
  readonly program: string;
  /** Chains that are not named stay (`--noflush`). */
  readonly isPartial: boolean;
  /** Accounting objects that `-m nfacct` can name. */
  readonly nfacct: ReadonlySet<string>;
  /** Makes the table if it is not there. */
  table(name: string): FakeTable;
  /** Is told each table that the text has committed. */
  committed?(table: string): void;
}

/** How `iptables-restore` ends. */
export interface RestoreEnd {
  readonly exitCode: number;
  readonly stderr: string;
}

/** Does what the text says, table by table as the real program: each takes effect at its COMMIT, as a whole or not at all. */
export function restore(text: string, subject: RestoreSubject): RestoreEnd {
  return new Restore(subject).run(text.split('\n'));
}

/** What the kernel refuses once it is asked: where the line stands, and what the nft variant calls it. */
interface KernelFault {
  readonly line: number;
  readonly text: string;
}

class Restore {
  readonly #subject: RestoreSubject;
  #table: FakeTable | undefined;
  #line = 0;
  #faults: KernelFault[] = [];
  /** Chains that a rule named when they were not there; the nft variant looks at COMMIT. */
  #missing: string[] = [];

  constructor(subject: RestoreSubject) {
    this.#subject = subject;
  }

  run(lines: readonly string[]): RestoreEnd {
    try {
      for (const line of lines) {
        this.#line++;
        if (line !== '' && !line.startsWith('#')) this.#take(line);
      }
      if (this.#table === undefined) return { exitCode: 0, stderr: '' };
      this.#table.rollback();
      return this.#end(1, `${this.#subject.program}: COMMIT expected at line ${this.#line}`);
    } catch (error) {
      this.#table?.rollback();
      if (error instanceof Refused) return this.#refusal(error);
      throw error;
    }
  }

  #take(line: string): void {
    const table = this.#table;
    if (table === undefined) {
      if (!line.startsWith('*')) throw new Refused('line', '');
      this.#begin(line.slice(1).trim());
    } else if (line === 'COMMIT') this.#commit(table);
    else if (line.startsWith(':')) this.#declare(table, line.slice(1));
    else this.#command(table, line);
  }

  #begin(name: string): void {
    const { variant, program } = this.#subject;
    if (!Object.hasOwn(builtInChains, name)) {
      const why =
        variant === 'nft' ? `line ${this.#line} table name '${name}' invalid` : `unable to initialize table '${name}'`;
      throw badWords(`${program}: ${why}`);
    }
    this.#table = this.#subject.table(name);
    this.#table.begin();
    this.#faults = [];
    this.#missing = [];
    if (!this.#subject.isPartial) this.#empty(this.#table);
  }

  #empty(table: FakeTable): void {
    for (const name of table.chains.keys()) table.flush(name);
    for (const [name, { policy }] of table.chains) if (policy === undefined) table.remove(name);
  }

  #commit(table: FakeTable): void {
    const [missing] = this.#missing;
    if (missing !== undefined) throw badWords(`Chain '${missing}' does not exist`);
    const loop = this.#faults.length === 0 && table.chains.size < 5000 ? table.findLoop() : undefined;
    if (loop !== undefined) this.#faults.push({ line: this.#line, text: 'RULE_APPEND failed (Too many links)' });
    if (this.#faults.length > 0) throw new KernelRefused(this.#faults);
    table.begin();
    this.#table = undefined;
    this.#subject.committed?.(table.name);
  }

  /** `:CHAIN POLICY [packets:bytes]`: a chain that somebody made is emptied or made, the kernel's get a policy. */
  #declare(table: FakeTable, text: string): void {
    const [name = '', policy = '-'] = text.split(' ');
    const known = table.chains.get(name);
    if (known?.policy !== undefined) {
      if (policy === 'ACCEPT' || policy === 'DROP') Object.assign(table.edit(name) ?? {}, { policy });
      else if (policy !== '-') throw this.#badPolicy(name, policy, 'Bad policy name');
      return;
    }
    if (policy !== '-' && this.#subject.variant === 'legacy') {
      throw this.#badPolicy(name, policy, 'Bad built-in chain name');
    }
    this.#checkName(name);
    if (known === undefined) table.make(name);
    else table.flush(name);
  }

  #badPolicy(chain: string, policy: string, why: string): Refused {
    return this.#subject.variant === 'nft'
      ? new Refused('line', `${why}.`)
      : new Refused('words', `Can't set policy \`${policy}' on \`${chain}' line ${this.#line}: ${why}\n`);
  }

  #checkName(name: string): void {
    if (name.length <= 28) return;
    const { variant } = this.#subject;
    throw badWords(
      variant === 'nft'
        ? `chain name \`${name}' too long (must be under 29 chars)`
        : `Invalid chain name \`${name}' (28 chars max)`,
    );
  }

  #command(table: FakeTable, line: string): void {
    const counters = /^\[\d+:\d+\] /.exec(line)?.[0] ?? '';
    const [command = '', chain = '', ...rest] = splitWords(line.slice(counters.length));
    switch (command) {
      case '-A':
      case '--append':
        return this.#append(table, chain, rest);
      case '-I':
      case '--insert':
        return this.#insert(table, chain, rest);
      case '-D':
      case '--delete':
        return this.#delete(table, chain, rest);
      case '-F':
      case '--flush':
        this.#existing(table, chain);
        return table.flush(chain);
      case '-X':
      case '--delete-chain':
        return this.#remove(table, chain);
      case '-N':
      case '--new-chain':
        if (table.chains.has(chain)) throw new Refused('line', chainExists);
        this.#checkName(chain);
        return table.make(chain);
      default:
        if (!command.startsWith('-')) throw new Refused('bare', `Bad argument \`${command}'`);
        throw new UsageError('fake-iptables.command', `the fake does not know '${command}' in a restore: ${line}`);
    }
  }

  #append(table: FakeTable, chain: string, words: readonly string[]): void {
    const entry = this.#entry(table, chain, words, 'RULE_APPEND');
    table.insert(chain, this.#existing(table, chain).length, entry);
  }

  #insert(table: FakeTable, chain: string, words: readonly string[]): void {
    const isNumbered = /^\d+$/.test(words[0] ?? '');
    const index = isNumbered ? Number(words[0]) - 1 : 0;
    const entry = this.#entry(table, chain, isNumbered ? words.slice(1) : words, 'RULE_INSERT');
    if (index < 0) throw badWords(`Invalid rule number \`${words[0]}'`);
    if (index > this.#existing(table, chain).length) throw new Refused('line', indexTooBig);
    table.insert(chain, index, entry);
  }

  #delete(table: FakeTable, chain: string, words: readonly string[]): void {
    const isNumbered = words.length === 1 && /^\d+$/.test(words[0] ?? '');
    const wanted = isNumbered ? undefined : this.#rule(table, words).text;
    const entries = this.#existing(table, chain);
    const index = isNumbered ? Number(words[0]) - 1 : entries.findIndex(({ rule }) => rule.text === wanted);
    if (index < 0 || index >= entries.length)
      throw new Refused('line', isNumbered ? 'Index of deletion too big.' : noSuchRule);
    table.delete(chain, index);
  }

  #remove(table: FakeTable, chain: string): void {
    const entries = this.#existing(table, chain);
    if (table.chains.get(chain)?.policy !== undefined) {
      throw new UsageError('fake-iptables.remove', `the fake does not remove ${chain}, a chain of the kernel`);
    }
    if (entries.length === 0 && !table.isReferenced(chain)) return table.remove(chain);
    if (this.#subject.variant === 'legacy') throw new Refused('line', '');
    this.#fault(`CHAIN_DEL failed (Device or resource busy): chain ${chain}`);
  }

  #existing(table: FakeTable, chain: string): readonly FakeEntry[] {
    const found = table.chains.get(chain);
    if (found === undefined) throw new Refused('line', noSuchChain);
    return found.entries;
  }

  #entry(table: FakeTable, chain: string, words: readonly string[], operation: string): FakeEntry {
    const rule = this.#rule(table, words);
    const why = kernelRefuses(table, rule, this.#subject.nfacct);
    if (why !== undefined) this.#fault(`${operation} failed (${why}): rule in chain ${chain}`);
    return { rule, packets: 0, bytes: 0 };
  }

  #rule(table: FakeTable, words: readonly string[]): FakeRule {
    const { ipFamily, variant } = this.#subject;
    const rule = parseRule(words, ipFamily);
    const ports = rule.matches.find(({ kind }) => isPorts(kind))?.kind;
    if (ports !== undefined && rule.protocol?.value !== ports) {
      if (variant === 'nft') throw badWords(`${ports.toUpperCase()} match requires '-p ${ports}'`);
      this.#fault('');
    }
    if (rule.target?.kind !== 'chain' || table.chains.has(rule.target.chain)) return rule;
    const { chain } = rule.target;
    if (variant === 'legacy') throw badWords(`Couldn't load target \`${chain}':No such file or directory\n`);
    this.#missing.push(chain);
    return rule;
  }

  #fault(text: string): void {
    this.#faults.push({ line: this.#line, text });
  }

  #refusal(refused: Refused): RestoreEnd {
    const { program, variant } = this.#subject;
    const where = `Error occurred at line: ${this.#line}\nTry \`${program} -h' or '${program} --help' for more information.`;
    const name = `${program} v1.8.9 (${variant === 'nft' ? 'nf_tables' : 'legacy'})`;
    if (refused instanceof KernelRefused) {
      if (variant === 'legacy') return this.#end(1, `${program}: line ${this.#line} failed`);
      return this.#end(4, `${name}: \n${refused.faults.map(({ line, text }) => `line ${line}: ${text}`).join('\n')}`);
    }
    if (refused.kind === 'words') return this.#end(2, `${name}: ${refused.message}\n${where}`);
    if (refused.kind === 'bare') return this.#end(2, `${refused.message}\n${where}`);
    const why = variant === 'nft' && refused.message !== '' ? `: ${refused.message}` : '';
    return this.#end(1, `${program}: line ${this.#line} failed${why}`);
  }

  #end(exitCode: number, text: string): RestoreEnd {
    return { exitCode, stderr: `${text}\n` };
  }
}

/** What the kernel refused at COMMIT, all of it. */
class KernelRefused extends Refused {
  readonly faults: readonly KernelFault[];

  constructor(faults: readonly KernelFault[]) {
    super('line', '');
    this.faults = faults;
  }
}

function isPorts(kind: string): boolean {
  return kind === 'tcp' || kind === 'udp' || kind === 'sctp';
}

/** Why the kernel takes no such rule in this table. */
function kernelRefuses(table: FakeTable, rule: FakeRule, nfacct: ReadonlySet<string>): string | undefined {
  const kind = rule.target?.kind;
  if (kind === 'REJECT' && table.name !== 'filter') return 'Invalid argument';
  if ((kind === 'DNAT' || kind === 'MASQUERADE') && table.name !== 'nat') return 'Invalid argument';
  const missing = rule.matches.some((match) => match.kind === 'nfacct' && !nfacct.has(match.name));
  return missing ? 'No such file or directory' : undefined;
}
