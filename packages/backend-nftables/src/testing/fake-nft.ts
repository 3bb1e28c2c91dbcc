import { type Millis, millis, type Random, UsageError } from '@switchyard/core';
import { OwnChanges } from '@switchyard/netfilter';
import { elementId, handleClass } from '../render/elements.ts';
import { birthmarkSet, heartbeatSet, heartbeatTimeout } from '../render/names.ts';
import { NftError } from '../kernel/nft-error.ts';
import { printTable } from './print-table.ts';
import type { NftTransport } from '../kernel/transport.ts';
import { type FakeObject, FakeRuleset, Refused } from './nft-ruleset.ts';
import { printChanges } from './print-changes.ts';

/** How often the fake fails though nothing is wrong. */
export interface InjectedFailures {
  /** Share of transactions that fail, 0 to 1. */
  readonly rate: number;
  readonly random: Random;
}

/**
 * nftables without a kernel: transactional, with the rules that this backend describes and none made at run time. It does not say
 * which change of a refused transaction is at fault, and neither did old kernels.
 */
export class FakeNft {
  readonly ruleset: FakeRuleset = new FakeRuleset();
  /** Every accepted or refused transaction, in order, as text. */
  readonly scripts: string[] = [];
  /** Transactions whose text matches are refused, as if the kernel could not take them. */
  refusing: RegExp | undefined;
  failures: InjectedFailures = { rate: 0, random: () => 1 };
  /** Called before each transaction with its text. */
  beforeTransaction: (script: string) => void = () => undefined;
  /** Called after each transaction that was taken. */
  afterTransaction: () => void = () => undefined;
  readonly #own = new OwnChanges();

  /** For `NftablesHost.openTransport`. */
  readonly openTransport = (): NftTransport => ({
    canAddClasses: false,
    keeper: undefined,
    exclusively: (work) => this.#own.exclusively(work),
    unwatched: () => this.#own.unwatched(),
    loadRules: async (attempt, rules, signal) =>
      this.#transact({ attempt, script: printTable(rules), signal }, () => this.ruleset.load(rules)),
    write: async (attempt, { table, changes }, signal) => this.#run(attempt, printChanges(table, changes), signal),
    ...this.#readers(),
    writeHeartbeat: async ({ table, suffix, now }, signal) => {
      const set = `inet ${table} ${heartbeatSet}${suffix}`;
      const element = `${Math.floor(now / 1000)} timeout ${heartbeatTimeout / 1000}s`;
      this.#run('cannot write a heartbeat', `flush set ${set}\nadd element ${set} { ${element} }\n`, signal);
    },
    flushObjects: async (table, objects, signal) => {
      const script = objects.map(({ kind, name }) => `flush ${kind} inet ${table} ${name}\n`).join('');
      this.#run(`cannot empty objects of table inet ${table}`, script, signal);
    },
    deleteTable: async (table, signal) =>
      this.#run(`cannot delete table inet ${table}`, `delete table inet ${table}\n`, signal),
    [Symbol.asyncDispose]: async () => undefined,
  });

  /** The elements of a map or set of a table as `key` or `key : data`, sorted. Throws if there is no such object. */
  elements(table: string, object: string): readonly string[] {
    const found = this.#object(table, object);
    if (found === undefined) throw new UsageError('fake-nft.object', `there is no ${object} in table ${table}`);
    return [...found.elements].map(([key, data]) => (data === '' ? key : `${key} : ${data}`)).sort();
  }

  #readers(): Pick<NftTransport, Reader> {
    const read = <T>(
      table: string,
      name: string,
      make: (object: FakeObject) => T,
      signal: AbortSignal,
    ): T | undefined => {
      signal.throwIfAborted();
      const object = this.#object(table, name);
      return object && make(object);
    };
    return {
      findTable: async (table, signal) => {
        signal.throwIfAborted();
        if (!this.ruleset.tables.has(table)) return undefined;
        return { birthmarks: read(table, birthmarkSet, ({ elements }) => [...elements.keys()].map(Number), signal) };
      },
      readElements: async ({ table, object, suffix }, signal) => {
        const name = `${object}${suffix}` as const;
        const elementsOf = ({ elements }: FakeObject) =>
          [...elements].map(([key, data]) => ({ id: elementId(name, key), data }));
        return read(table, name, elementsOf, signal);
      },
      readSlots: async () => undefined,
      readIntervals: async ({ table, object, suffix }, signal) =>
        read(table, `${object}${suffix}`, ({ elements }) => [...elements.keys()].sort(), signal),
      readCounters: async ({ table, object, suffix }, signal) =>
        read(table, `${object}${suffix}`, ({ counts }) => new Map(counts), signal),
      readHeartbeat: async ({ table, suffix }, signal) => {
        // No time passes in the fake.
        const age = ({ elements }: FakeObject): Millis | undefined => (elements.size === 0 ? undefined : millis(0));
        return read(table, `${heartbeatSet}${suffix}`, age, signal);
      },
      readClasses: async (table, suffix, signal) => {
        const classes = ({ elements }: FakeObject) =>
          new Map([...elements].map(([key, verdict]) => [handleClass(Number(key)), verdict.replace(/^goto /, '')]));
        return read(table, `lb${suffix}-classes`, classes, signal) ?? new Map();
      },
      listObjects: async (table, signal) => {
        signal.throwIfAborted();
        const objects = [...(this.ruleset.tables.get(table)?.objects ?? [])];
        return objects.map(([name, { kind, elements }]) => ({ kind, name, isEmpty: elements.size === 0 }));
      },
    };
  }

  #object(table: string, name: string): FakeObject | undefined {
    return this.ruleset.tables.get(table)?.objects.get(name);
  }

  #run(attempt: string, script: string, signal: AbortSignal): void {
    if (script !== '') this.#transact({ attempt, script, signal }, () => this.ruleset.transaction(script));
  }

  #transact({ attempt, script, signal }: Attempt, work: () => void): void {
    signal.throwIfAborted();
    this.beforeTransaction(script);
    this.scripts.push(script);
    if (this.failures.random() < this.failures.rate || this.refusing?.test(script) === true) {
      throw new NftError(`${attempt}: no memory for it`, { refusal: 'other' });
    }
    try {
      work();
      this.afterTransaction();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw new NftError(`${attempt}: ${error.message}`, { refusal: error.refusal, cause: error });
    }
  }
}

interface Attempt {
  readonly attempt: string;
  readonly script: string;
  readonly signal: AbortSignal;
}

type Reader =
  | 'findTable'
  | 'readElements'
  | 'readSlots'
  | 'readIntervals'
  | 'readCounters'
  | 'readHeartbeat'
  | 'readClasses'
  | 'listObjects';
