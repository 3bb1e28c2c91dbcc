import { type IpFamily, UsageError } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { builtInChains, type FakeEntry, type FakeTable } from './fake-table.ts';
import { parseRule } from './parse-rule.ts';
import { badWords, chainExists, indexTooBig, noSuchChain, noSuchRule, Refused } from './refused.ts';
import type { FakeRule } from './rule-types.ts';
import { faultOnTheWay, isAllowedFrom } from './fault-on-the-way.ts';
import { splitWords } from './split-words.ts';

/** The tables that a restore changes. */
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
  /** Called for each table that the text has committed. */
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

/** A refusal of the kernel: the line, and the nft variant's name for the command. */
interface KernelFault {
  readonly line: number;
  readonly text: string;
}

/** Where a rule is to stand, and what the nft variant calls the attempt. */
interface Place {
  readonly table: FakeTable;
  readonly chain: string;
  readonly operation: string;
}

class Restore {
  readonly #subject: RestoreSubject;
  #table: FakeTable | undefined;
  #line = 0;
  #faults: KernelFault[] = [];
  /** The first line that cannot be done: the nft variant reads all words of a table before it does anything. */
  #deferred: { readonly line: number; readonly refused: Refused } | undefined;

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
    else this.#do(() => (line.startsWith(':') ? this.#declare(table, line.slice(1)) : this.#command(table, line)));
  }

  #do(change: () => void): void {
    try {
      change();
    } catch (error) {
      if (this.#subject.variant === 'legacy' || !(error instanceof Refused) || error.kind !== 'line') throw error;
      this.#deferred ??= { line: this.#line, refused: error };
    }
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
    this.#deferred = undefined;
    if (!this.#subject.isPartial) this.#empty(this.#table);
  }

  #empty(table: FakeTable): void {
    for (const name of table.chains.keys()) table.flush(name);
    for (const [name, { policy }] of table.chains) if (policy === undefined) table.remove(name);
  }

  #commit(table: FakeTable): void {
    if (this.#deferred !== undefined) {
      // A missing chain is reported as if COMMIT had named it.
      if (this.#deferred.refused.kind === 'line') this.#line = this.#deferred.line;
      throw this.#deferred.refused;
    }
    if (this.#subject.variant === 'legacy') this.#checkWays(table, '');
    if (this.#faults.length > 0) throw new KernelRefused(this.#faults);
    table.begin();
    this.#table = undefined;
    this.#subject.committed?.(table.name);
  }

  /** Beyond this size a test is about amounts. */
  #checkWays(table: FakeTable, what: string, where = ''): void {
    const fault = table.chains.size < 1000 ? faultOnTheWay(table) : undefined;
    if (fault !== undefined) this.#fault(`${what} failed (${fault})${where}`);
  }

  /** `:CHAIN POLICY [packets:bytes]`: creates or empties a user-defined chain, sets the policy of a kernel chain. */
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
    this.#checkName(name, this.#subject.variant);
    if (known === undefined) table.make(name);
    else table.flush(name);
  }

  #badPolicy(chain: string, policy: string, why: string): Refused {
    return this.#subject.variant === 'nft'
      ? new Refused('line', `${why}.`)
      : new Refused('placeless', `Can't set policy \`${policy}' on \`${chain}' line ${this.#line}: ${why}`);
  }

  #checkName(name: string, saidBy: IptablesVariant): void {
    if (name.length <= 28) return;
    throw badWords(
      saidBy === 'nft'
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
        this.#checkName(chain, 'nft');
        return table.make(chain);
      default:
        if (!command.startsWith('-')) throw new Refused('bare', `Bad argument \`${command}'`);
        throw new UsageError('fake-iptables.command', `the fake does not know '${command}' in a restore: ${line}`);
    }
  }

  #append(table: FakeTable, chain: string, words: readonly string[]): void {
    const entry = this.#entry(table, chain, words);
    this.#put({ table, chain, operation: 'RULE_APPEND' }, this.#existing(table, chain).length, entry);
  }

  #insert(table: FakeTable, chain: string, words: readonly string[]): void {
    const isNumbered = hasNumber(words);
    const index = isNumbered ? Number(words[0]) - 1 : 0;
    const entry = this.#entry(table, chain, isNumbered ? words.slice(1) : words);
    if (index < 0) throw badWords(`Invalid rule number \`${words[0]}'`);
    if (index > this.#existing(table, chain).length) throw new Refused('line', indexTooBig);
    const isLast = index > 0 && index === this.#existing(table, chain).length;
    this.#put({ table, chain, operation: isLast ? 'RULE_APPEND' : 'RULE_INSERT' }, index, entry);
  }

  /** The kernel looks at each rule, and whether the ways through the table are still right with it. */
  #put({ table, chain, operation }: Place, index: number, entry: FakeEntry): void {
    const where = `: rule in chain ${chain}`;
    const why = kernelRefuses({ table, chain }, entry.rule, this.#subject.nfacct);
    if (why !== undefined) return this.#fault(`${operation} failed (${why})${where}`);
    table.insert(chain, index, entry);
    if (this.#subject.variant === 'nft') this.#checkWays(table, operation, where);
  }

  #delete(table: FakeTable, chain: string, words: readonly string[]): void {
    const isNumbered = hasNumber(words);
    const wanted = isNumbered ? undefined : this.#rule(table, chain, words).text;
    if (!isNumbered && !table.chains.has(chain)) throw new Refused('line', noSuchRule);
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
    // Following lines no longer see it; the kernel checks at COMMIT.
    this.#fault(`CHAIN_DEL failed (Device or resource busy): chain ${chain}`);
    table.remove(chain);
  }

  #existing(table: FakeTable, chain: string): readonly FakeEntry[] {
    const found = table.chains.get(chain);
    if (found === undefined) throw new Refused('line', noSuchChain);
    return found.entries;
  }

  #entry(table: FakeTable, chain: string, words: readonly string[]): FakeEntry {
    return { rule: this.#rule(table, chain, words), packets: 0, bytes: 0 };
  }

  #rule(table: FakeTable, chain: string, words: readonly string[]): FakeRule {
    const { ipFamily, variant } = this.#subject;
    const rule = parseRule(words, ipFamily);
    if (rule.inInterface !== undefined && (chain === 'POSTROUTING' || chain === 'OUTPUT')) {
      throw badWords(`Can't use -i with ${chain}\n`);
    }
    if (table.name === 'nat' && rule.target?.kind === 'DROP') {
      throw badWords('\nThe "nat" table is not intended for filtering, the use of DROP is therefore inhibited.\n\n');
    }
    const ports = rule.matches.find(({ kind }) => isPorts(kind))?.kind;
    if (ports !== undefined && rule.protocol?.value !== ports) {
      if (variant === 'nft') throw badWords(`${ports.toUpperCase()} match requires '-p ${ports}'`);
      this.#fault('');
    }
    if (rule.target?.kind !== 'chain' || table.chains.has(rule.target.chain)) return rule;
    const { chain: missing } = rule.target;
    if (variant === 'legacy') {
      const isGoto = rule.target.isGoto;
      throw badWords(
        isGoto ? `goto '${missing}' is not a chain` : `Couldn't load target \`${missing}':No such file or directory\n`,
      );
    }
    this.#deferred ??= { line: this.#line, refused: badWords(`Chain '${missing}' does not exist`) };
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
    if (refused.kind === 'placeless') return this.#end(1, `${name}: ${refused.message}`);
    if (refused.kind === 'bare') return this.#end(2, `${refused.message}\n${where}`);
    const why = variant === 'nft' && refused.message !== '' ? `: ${refused.message}` : '';
    return this.#end(1, `${program}: line ${this.#line} failed${why}`);
  }

  #end(exitCode: number, text: string): RestoreEnd {
    return { exitCode, stderr: `${text}\n` };
  }
}

/** All refusals of the kernel at COMMIT. */
class KernelRefused extends Refused {
  readonly faults: readonly KernelFault[];

  constructor(faults: readonly KernelFault[]) {
    super('line', '');
    this.faults = faults;
  }
}

/** `-I CHAIN 3 ...`, `-D CHAIN 3`: what stands there and is no option must be a number. */
function hasNumber([word = '-']: readonly string[]): boolean {
  if (/^[-!]/.test(word)) return false;
  if (!/^\d+$/.test(word)) throw badWords(`Invalid rule number \`${word}'`);
  return true;
}

function isPorts(kind: string): boolean {
  return kind === 'tcp' || kind === 'udp' || kind === 'sctp';
}

/** Why the kernel takes no such rule there. */
function kernelRefuses(
  { table, chain }: Pick<Place, 'table' | 'chain'>,
  rule: FakeRule,
  nfacct: ReadonlySet<string>,
): string | undefined {
  const kind = rule.target?.kind;
  if (table.chains.get(chain)?.policy !== undefined && !isAllowedFrom(chain, rule)) return 'Invalid argument';
  if (kind === 'REJECT' && table.name !== 'filter') return 'Invalid argument';
  if ((kind === 'DNAT' || kind === 'MASQUERADE') && table.name !== 'nat') return 'Invalid argument';
  const missing = rule.matches.some((match) => match.kind === 'nfacct' && !nfacct.has(match.name));
  return missing ? 'No such file or directory' : undefined;
}
