import { type Random, UsageError } from '@switchyard/core';
import type { CommandOptions, CommandResult, CommandRunner } from '@switchyard/host';
import { inputOf } from '@switchyard/host/testing';
import { type FakeObject, FakeRuleset, type FakeTable, type PartType, Refused } from './nft-ruleset.ts';

/** How often the fake fails though nothing is wrong. */
export interface InjectedFailures {
  /** Share of transactions that fail, 0 to 1. */
  readonly rate: number;
  readonly random: Random;
}

/**
 * An nft without a kernel: transactional, with a closed grammar of the rules this backend writes. Text it does not
 * know throws `UsageError` instead of being ignored. What the kernel would refuse is an exit code with its text.
 */
export class FakeNft implements CommandRunner {
  readonly ruleset: FakeRuleset = new FakeRuleset();
  /** Every accepted or refused script, in order. */
  readonly scripts: string[] = [];
  /** What `nft --version` says. */
  version = 'nftables v1.0.6 (Lester Gooch #5)';
  /** Scripts that match are refused, as if the kernel could not take them. */
  refusing: RegExp | undefined;
  failures: InjectedFailures = { rate: 0, random: () => 1 };

  async run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
    options.signal.throwIfAborted();
    const line = [file, ...args].join(' ');
    if (line === 'nft --version') return ok(`${this.version}\n`);
    if (line === 'nft -f -') return this.#apply(inputOf(options) ?? '', this.ruleset);
    if (line === 'unshare --net nft -f -') return this.#apply(inputOf(options) ?? '', new FakeRuleset());
    const listing = /^nft -j (?:-t )?list (table|map|set) inet (\S+) ?(\S*)$/.exec(line);
    if (listing === null) throw new UsageError('fake-nft.command-line', `the fake does not know the command '${line}'`);
    return this.#list(listing[1] ?? '', listing[2] ?? '', listing[3] ?? '');
  }

  /** The elements of a map or set of a table as `key` or `key : data`, sorted. Throws if there is no such object. */
  elements(table: string, object: string): readonly string[] {
    const found = this.ruleset.tables.get(table)?.objects.get(object);
    if (found === undefined) throw new UsageError('fake-nft.object', `there is no ${object} in table ${table}`);
    return [...found.elements].map(([key, data]) => (data === '' ? key : `${key} : ${data}`)).sort();
  }

  #apply(script: string, ruleset: FakeRuleset): CommandResult {
    this.scripts.push(script);
    if (this.failures.random() < this.failures.rate || this.refusing?.test(script) === true) {
      return refusal('Could not process rule: Cannot allocate memory');
    }
    try {
      ruleset.transaction(script);
      return ok('');
    } catch (error) {
      if (error instanceof Refused) return refusal(error.message);
      throw error;
    }
  }

  #list(what: string, tableName: string, objectName: string): CommandResult {
    const table = this.ruleset.tables.get(tableName);
    if (table === undefined) return refusal('No such file or directory');
    if (what === 'table') return json([...table.objects].map(([name, object]) => listed(name, object)));
    const object = objectOf(table, what, objectName);
    return object === undefined ? refusal('No such file or directory') : json([listed(objectName, object)]);
  }
}

function objectOf(table: FakeTable, kind: string, name: string): FakeObject | undefined {
  const object = table.objects.get(name);
  return object?.kind === kind ? object : undefined;
}

/** As nft 1.0.6 prints it: no `elem` when there is none, `classid` numbers as `major:minor`. */
function listed(name: string, object: FakeObject): unknown {
  const elem = [...object.elements].map(([key, data]) => {
    const left = withTimeout(key) ?? withCounter(value(key, object.key), object, key);
    return object.kind === 'map' ? [left, value(data, object.data)] : left;
  });
  return { [object.kind]: { family: 'inet', name, ...(elem.length === 0 ? {} : { elem }) } };
}

/** No time passes in the fake. */
function withTimeout(key: string): unknown {
  const match = /^(\d+) timeout (\d+)s$/.exec(key);
  if (match === null) return undefined;
  const timeout = Number(match[2]);
  return { elem: { val: new Date(Number(match[1]) * 1000).toISOString(), timeout, expires: timeout } };
}

function withCounter(val: unknown, object: FakeObject, key: string): unknown {
  const packets = object.counts.get(key) ?? 0;
  return object.isCounted ? { elem: { val, counter: { packets, bytes: packets * 60 } } } : val;
}

function value(text: string, types: readonly PartType[]): unknown {
  const parts = text.split(' . ').map((part, index) => partValue(part, types[index]));
  return parts.length === 1 ? parts[0] : { concat: parts };
}

function partValue(part: string, type: PartType | undefined): unknown {
  if (type === 'meta priority') {
    const number = Number(part);
    return `${Math.floor(number / 0x10000).toString(16)}:${(number % 0x10000).toString(16)}`;
  }
  if (type === 'th dport' || type === 'mark' || type?.startsWith('numgen') === true) return Number(part);
  if (type === 'iifname') return JSON.parse(part);
  if (type === 'verdict') return { goto: { target: part.replace(/^goto /, '') } };
  const [addr = '', length] = part.split('/');
  return length === undefined ? part : { prefix: { addr, len: Number(length) } };
}

function ok(stdout: string): CommandResult {
  return { exitCode: 0, stdout, stderr: '' };
}

function refusal(why: string): CommandResult {
  return { exitCode: 1, stdout: '', stderr: `/dev/stdin:1:1-1: Error: ${why}\n` };
}

function json(items: readonly unknown[]): CommandResult {
  return ok(JSON.stringify({ nftables: [{ metainfo: { json_schema_version: 1 } }, ...items] }));
}
