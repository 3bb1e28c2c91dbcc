import { type IpFamily, type Random, UsageError } from '@switchyard/core';
import { CommandError, type CommandOptions, type CommandResult, type CommandRunner } from '@switchyard/host';
import type { PacketCounters } from '@switchyard/netfilter';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { builtInChains, FakeTable, listLines, saveLines } from './fake-table.ts';
import { restore } from './restore.ts';

/** How often the fake fails though nothing is wrong. */
export interface InjectedFailures {
  /** Share of restores that fail at one of their COMMITs, 0 to 1: half are refused there, half take effect and are killed. */
  readonly rate: number;
  readonly random: Random;
}

/** One call of `iptables-restore`. */
export interface RestoreNote {
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
  readonly text: string;
  readonly exitCode: number;
}

/** Properties that a program's name encodes. */
interface Program {
  readonly name: string;
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
  readonly tool: 'command' | 'save' | 'restore';
}

/**
 * iptables without a kernel: both variants and families, transactional per table as the real one, with a closed grammar of
 * rules. What iptables would refuse ends with its exit code and text, at its line; what only the fake does not know throws
 * `UsageError` instead of being ignored.
 */
export class FakeIptables implements CommandRunner {
  /** Tables by `tableKey`, the oldest first. A table is missing until a command names it. */
  readonly tables: Map<string, FakeTable> = new Map();
  /** Every restore, in order. */
  readonly restores: RestoreNote[] = [];
  /** Names of accounting objects (`nfacct add`). */
  readonly nfacct: Set<string> = new Set();
  /** The same as the backend makes and reads them; they count nothing. */
  readonly packetCounters: PacketCounters = {
    ensure: (name) => void this.nfacct.add(name),
    read: () => new Map([...this.nfacct].map((name) => [name, { packets: 0, bytes: 0 }])),
  };
  /** Clients that `-m recent` remembers, by list. */
  readonly recent: Map<string, Set<string>> = new Map();
  /** Restores whose text matches are refused at that line, as if the kernel could not take it. */
  refusing: RegExp | undefined;
  failures: InjectedFailures = { rate: 0, random: () => 1 };
  /** Number of following restores that fail because another process holds the lock. */
  contended = 0;
  /** Variants that are installed. The first is what plain `iptables` is. */
  variants: readonly IptablesVariant[] = ['nft', 'legacy'];
  version = '1.8.9';
  #pid = 1000;

  async run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
    options.signal.throwIfAborted();
    if (file === 'unshare') return this.#elsewhere(args, options);
    const program = this.#program(file);
    options.onStart?.(this.#pid++);
    if (args.includes('--version') || args.includes('-V')) return ok(`${program.name} ${this.#versionText(program)}\n`);
    const result = this.#dispatch(program, args, options);
    if (options.onStdout === undefined) return result;
    // In pieces that end anywhere, as from a pipe.
    for (let at = 0; at < result.stdout.length; at += pieceLength)
      options.onStdout(result.stdout.slice(at, at + pieceLength));
    return { ...result, stdout: '' };
  }

  /** The table; undefined until a command names it. */
  table(ipFamily: IpFamily, variant: IptablesVariant, name: string): FakeTable | undefined {
    return this.tables.get(tableKey(ipFamily, variant, name));
  }

  /** `iptables-save` without comments; tables in which there is nothing are left out. */
  save(ipFamily: IpFamily, variant: IptablesVariant): string {
    const tables = Object.keys(builtInChains).flatMap((name) => this.table(ipFamily, variant, name) ?? []);
    const lines = tables.filter(({ isEmpty }) => !isEmpty).flatMap((table) => [...saveLines(table, false)]);
    return lines.map((line) => `${line}\n`).join('');
  }

  /** Runs a restore that must succeed; for what tests put there beforehand. */
  put(ipFamily: IpFamily, variant: IptablesVariant, text: string): void {
    const { exitCode, stderr } = this.#restore(this.#programOf(ipFamily, variant), text, true);
    if (exitCode !== 0) throw new UsageError('fake-iptables.put', stderr);
  }

  /** `unshare --net PROGRAM ...`: in a network namespace that ends with the program. */
  #elsewhere([option, file = '', ...args]: readonly string[], options: CommandOptions): Promise<CommandResult> {
    if (option !== '--net') throw new UsageError('fake-iptables.program', `the fake does not know unshare ${option}`);
    const { variants, version } = this;
    return Object.assign(new FakeIptables(), { variants, version }).run(file, args, options);
  }

  #program(file: string): Program {
    const [, base, variantName, tool] = /^(ip6?tables)(?:-(nft|legacy))?(?:-(save|restore))?$/.exec(file) ?? [];
    if (base === undefined)
      throw new UsageError('fake-iptables.program', `the fake does not know the program '${file}'`);
    const variant = (variantName ?? this.variants[0]) as IptablesVariant | undefined; // the pattern has seen to it
    if (variant === undefined || !this.variants.includes(variant)) {
      throw new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, { file, args: [] });
    }
    // The legacy programs do not say so in their names, and the one that lists says neither.
    const name = variant === 'legacy' || tool === undefined ? file.replace(/-(?:nft|legacy)/, '') : file;
    return {
      name,
      variant,
      ipFamily: base === 'iptables' ? 'IPv4' : 'IPv6',
      tool: (tool ?? 'command') as Program['tool'],
    };
  }

  #programOf(ipFamily: IpFamily, variant: IptablesVariant): Program {
    return this.#program(`${ipFamily === 'IPv4' ? 'iptables' : 'ip6tables'}-${variant}-restore`);
  }

  #versionText({ variant }: Program): string {
    return `v${this.version} (${variant === 'nft' ? 'nf_tables' : 'legacy'})`;
  }

  #dispatch(program: Program, args: readonly string[], options: CommandOptions): CommandResult {
    const line = parseArguments(program, args);
    switch (program.tool) {
      case 'restore':
        return this.#write(program, textOf(options.stdin), line.isPartial);
      case 'save':
        return this.#print(program, line);
      case 'command':
        return this.#list(program, line);
    }
  }

  /** A restore as the world treats it: it may have to wait, be refused, be killed. */
  #write(program: Program, text: string, isPartial: boolean): CommandResult {
    const note = (result: CommandResult): CommandResult => {
      const { ipFamily, variant } = program;
      this.restores.push({ ipFamily, variant, text, exitCode: result.exitCode });
      return result;
    };
    if (this.contended > 0) {
      this.contended--;
      return note(this.#lockHeld(program));
    }
    const refused = this.refusing?.exec(text);
    if (refused !== null && refused !== undefined)
      return note(this.#refusedAt(program, text, refused.index, isPartial));
    if (this.failures.random() >= this.failures.rate) return note(this.#restore(program, text, isPartial));
    const commits = [...text.matchAll(/^COMMIT$/gm)];
    const at = commits[Math.floor(this.failures.random() * commits.length)]?.index ?? 0;
    if (this.failures.random() < 0.5) return note(this.#refusedAt(program, text, at, isPartial));
    return note(this.#killedAfter(program, text, at + 'COMMIT\n'.length, isPartial));
  }

  /**
   * As when the kernel has no memory: tables before are written. The legacy kernel takes a table as a whole, so that the line
   * is that of COMMIT.
   */
  #refusedAt(program: Program, text: string, index: number, isPartial: boolean): CommandResult {
    const written = this.#restore(program, wholeTables(text, index), isPartial);
    if (written.exitCode !== 0) return written;
    const line = lineAt(text, program.variant === 'nft' ? index : text.indexOf('\nCOMMIT', index - 1) + 1);
    return program.variant === 'nft'
      ? failed(
          4,
          `${program.name} ${this.#versionText(program)}: \nline ${line}: RULE_APPEND failed (Cannot allocate memory): rule in chain X\n`,
        )
      : failed(1, `${program.name}: line ${line} failed\n`);
  }

  #lockHeld(program: Program): CommandResult {
    return program.variant === 'legacy'
      ? failed(4, 'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n')
      : failed(
          4,
          `${program.name} ${this.#versionText(program)}: \nline 1: TABLE_FLUSH failed (Resource temporarily unavailable): table nat\n`,
        );
  }

  #killedAfter(program: Program, text: string, end: number, isPartial: boolean): CommandResult {
    const result = this.#restore(program, text.slice(0, end), isPartial);
    return result.exitCode === 0 ? failed(137, '') : result;
  }

  #restore({ ipFamily, variant, name }: Program, text: string, isPartial: boolean): CommandResult {
    const tables = new Map<string, FakeTable>();
    const end = restore(text, {
      ipFamily,
      variant,
      program: name,
      isPartial,
      nfacct: this.nfacct,
      table: (table) => {
        const found = this.table(ipFamily, variant, table) ?? tables.get(table) ?? new FakeTable(table);
        tables.set(table, found);
        // Reading a legacy table creates it.
        if (variant === 'legacy') this.tables.set(tableKey(ipFamily, variant, table), found);
        return found;
      },
      committed: (table) => {
        const made = tables.get(table);
        if (made !== undefined) this.tables.set(tableKey(ipFamily, variant, table), made);
      },
    });
    return { ...end, stdout: '' };
  }

  #print({ ipFamily, variant, name }: Program, { table, hasCounters }: Line): CommandResult {
    if (table !== undefined && !Object.hasOwn(builtInChains, table)) {
      return failed(
        1,
        variant === 'nft'
          ? `Table \`${table}' does not exist\n`
          : `${name}: Cannot initialize: Table does not exist (do you need to insmod?)\n`,
      );
    }
    const known = this.#known(ipFamily, variant);
    const tables = table === undefined ? known : [this.table(ipFamily, variant, table) ?? new FakeTable(table)];
    const lines = tables.flatMap((one) => [
      `# Generated by ${name} v${this.version}${variant === 'nft' ? ' (nf_tables)' : ''} on Sat Nov 21 19:00:00 2026`,
      ...saveLines(one, hasCounters),
      '# Completed on Sat Nov 21 19:00:00 2026',
    ]);
    return ok(lines.map((one) => `${one}\n`).join(''));
  }

  /** The nft variant has an order of its own, legacy prints first what was made last. */
  #known(ipFamily: IpFamily, variant: IptablesVariant): readonly FakeTable[] {
    if (variant === 'nft')
      return Object.keys(builtInChains).flatMap((each) => this.table(ipFamily, variant, each) ?? []);
    const prefix = tableKey(ipFamily, variant, '');
    const found = [...this.tables].filter(([key]) => key.startsWith(prefix)).map(([, table]) => table);
    return found.toReversed();
  }

  #list({ ipFamily, variant, name }: Program, { table = 'filter', list, hasCounters }: Line): CommandResult {
    if (list === undefined) throw new UsageError('fake-iptables.command-line', `the fake lets ${name} only list (-S)`);
    const found = this.table(ipFamily, variant, table) ?? new FakeTable(table);
    const [chain] = list;
    if (chain !== undefined && !found.chains.has(chain)) {
      return failed(
        1,
        variant === 'nft'
          ? `${name} ${this.#versionText({ ipFamily, variant, name, tool: 'command' })}: chain \`${chain}' in table \`${table}' is incompatible, use 'nft' tool.\n`
          : `${name}: No chain/target/match by that name.\n`,
      );
    }
    return ok([...listLines(found, chain, hasCounters)].map((one) => `${one}\n`).join(''));
  }
}

/** The key of `FakeIptables.tables`. */
export function tableKey(ipFamily: IpFamily, variant: IptablesVariant, table: string): string {
  return `${ipFamily} ${variant} ${table}`;
}

/** Output comes in pieces of this length, odd enough to cut lines anywhere. */
const pieceLength = 4099;

/** A command line, read. */
interface Line {
  readonly table: string | undefined;
  readonly hasCounters: boolean;
  readonly isPartial: boolean;
  /** `-S`, with a chain or without. */
  readonly list: readonly string[] | undefined;
}

function parseArguments({ name, tool }: Program, args: readonly string[]): Line {
  let line: Line = { table: undefined, hasCounters: false, isPartial: false, list: undefined };
  for (let at = 0; at < args.length; at++) {
    const [word = '', next] = [args[at], args[at + 1]];
    const isNumber = /^\d+$/.test(next ?? '');
    if (/^(-w\d*|--wait(=\d+)?|-W\d*|--wait-interval(=\d+)?)$/.test(word)) at += isNumber ? 1 : 0;
    else if (word === '-t' || word === '--table') line = { ...line, table: args[++at] };
    else if (word.startsWith('--table=')) line = { ...line, table: word.slice('--table='.length) };
    else if (word === '-c' || word === '--counters' || (tool === 'command' && word === '-v')) {
      line = { ...line, hasCounters: true };
    } else if (tool === 'restore' && (word === '-n' || word === '--noflush')) line = { ...line, isPartial: true };
    else if (tool === 'command' && (word === '-S' || word === '--list-rules')) {
      const hasChain = next !== undefined && !next.startsWith('-');
      line = { ...line, list: hasChain ? [next] : [] };
      at += hasChain ? 1 : 0;
    } else
      throw new UsageError(
        'fake-iptables.command-line',
        `the fake does not know '${word}' of '${name} ${args.join(' ')}'`,
      );
  }
  return line;
}

function textOf(stdin: CommandOptions['stdin']): string {
  return typeof stdin === 'string' ? stdin : [...(stdin ?? [])].join('');
}

/** The tables of a text that end before an index. */
function wholeTables(text: string, index: number): string {
  const end = text.lastIndexOf('\nCOMMIT\n', index - 2);
  return end < 0 ? '' : text.slice(0, end + '\nCOMMIT\n'.length);
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

function ok(stdout: string): CommandResult {
  return { exitCode: 0, stdout, stderr: '' };
}

function failed(exitCode: number, stderr: string): CommandResult {
  return { exitCode, stdout: '', stderr };
}
