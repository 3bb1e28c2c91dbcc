import { NetlinkExchange, type NetlinkOptions, type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import type { NftError } from '../nft-error.ts';
import type { TableDescription } from '../../render/rules/model.ts';
import { BatchEncoder, type BatchTarget, type EncodedBatch } from './encode-batch.ts';
import { type TableMode, writeChainHead, writeTable, writeTableHead } from './encode-table.ts';
import { exchangeErrors, explainRefusal } from './refusals.ts';
import { deleteChain, deleteRules } from './write-objects.ts';

/** Bytes of a batch that the kernel takes in one piece. Tables have no elements of Services and are far smaller. */
const sendBuffer = 1 << 22;
const receiveBuffer = 1 << 20;

/** Where tables are written. */
export interface TableWriterOptions {
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
  /** Opens the socket; default: a real one. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
}

/** How a table is written. */
export interface TableChange {
  /** Begins the message of an error, as "cannot load ...". */
  readonly attempt: string;
  readonly table: TableDescription;
  readonly mode: TableMode;
  /** Chains of the table to delete in the same transaction, before the new ones are added. */
  readonly replaced?: readonly string[];
}

/** Writes tables from descriptions over a socket of its own. Methods throw `NftError` and `HostError`; each is one transaction. */
export class TableWriter implements Disposable {
  readonly #exchange: NetlinkExchange;
  readonly #encoder = new BatchEncoder();

  constructor({ netns, open = openNetlinkSocket }: TableWriterOptions = {}) {
    const connect = (): NetlinkSocket => open({ protocol: 'netfilter', sendBuffer, receiveBuffer, netns });
    this.#exchange = new NetlinkExchange(connect, exchangeErrors);
  }

  /** Loads a table, or adds to an existing one. */
  load({ attempt, table, mode, replaced = [] }: TableChange): void {
    this.#write(attempt, table.name, (target) => {
      removeChains(target, replaced);
      writeTable(target, table, mode);
    });
  }

  /** Lets the kernel check a new table without making it. */
  check({ attempt, table }: Pick<TableChange, 'attempt' | 'table'>): void {
    const batch = this.#encoder.trial(table.name, (target) => writeTable(target, table, 'create'));
    this.#send(attempt, table.name, batch);
  }

  /** Activates a table that another process made dormant. */
  wake(attempt: string, { name, comment }: Pick<TableDescription, 'name' | 'comment'>): void {
    this.#write(attempt, name, (target) => writeTableHead(target, comment, 'add'));
  }

  /** Adds a chain without rules. */
  addChain(attempt: string, table: string, name: string): void {
    this.#write(attempt, table, (target) => writeChainHead(target, { name }));
  }

  /** Deletes chains with their rules. */
  removeChains(attempt: string, table: string, names: readonly string[]): void {
    this.#write(attempt, table, (target) => removeChains(target, names));
  }

  [Symbol.dispose](): void {
    this.#exchange[Symbol.dispose]();
  }

  #write(attempt: string, table: string, write: (target: BatchTarget) => void): void {
    this.#send(attempt, table, this.#encoder.custom(table, write));
  }

  #send(attempt: string, table: string, batch: EncodedBatch): void {
    const answer = this.#exchange.batch(batch);
    if (answer !== undefined) throw explainRefusal(answer, { attempt, table, batch, changes: [] }) satisfies NftError;
  }
}

/** Deletes all rules before the chains: rules of one chain may lead to another. */
function removeChains(target: BatchTarget, names: readonly string[]): void {
  for (const name of names) deleteRules(target, name);
  for (const name of names) deleteChain(target, name);
}
