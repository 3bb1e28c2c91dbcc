import { setImmediate } from 'node:timers/promises';
import { type Millis, millis } from '@switchyard/core';
import {
  type NetlinkDump,
  NetlinkExchange,
  type NetlinkMessage,
  type NetlinkRequest,
  type NetlinkSocket,
  NLM_F,
  openNetlinkSocket,
  readAttributes,
  readText,
  readUint32,
  readUint32be,
} from '@switchyard/native';
import { NFT_MSG, NFT_SET, NFTA, type OwnChanges, ownChanges } from '@switchyard/netfilter';
import { chainName } from '../../render/class-chains.ts';
import { type Change, type Element, handleClass } from '../../render/elements.ts';
import {
  birthmarkSet,
  type CountedObject,
  type DropSet,
  type ElementObject,
  type FamilySuffix,
  heartbeatSet,
  intervalKind,
  type IntervalObject,
  type TableName,
} from '../../render/names.ts';
import { NftError } from '../nft-error.ts';
import type { TableDescription } from '../../render/rules/model.ts';
import type {
  FoundTable,
  Heartbeat,
  KernelObject,
  ListedObject,
  NftTransport,
  RulesKeeper,
  SlotCounts,
  SlotMap,
  WriteRequest,
} from '../transport.ts';
import { elementOf, ElementReader, keyOf, packetsOf, type RawElement } from './decode-elements.ts';
import { boundaryOf, intervalTexts } from './decode-intervals.ts';
import { BatchEncoder, type BatchTarget, type EncodedBatch, objectLayout } from './encode-batch.ts';
import { writeTable } from './encode-table.ts';
import type { TableWriterOptions } from './table-writer.ts';
import { exchangeErrors, explainRefusal, isTooLarge, refusedRead } from './refusals.ts';
import { encodeHeartbeat, heartbeatAges } from './heartbeat.ts';
import { slotRequests } from './slot-requests.ts';
import { clearElements } from './write-objects.ts';

/** Bytes of a batch that the kernel takes in one piece: more than the largest transaction of the backend. */
const sendBuffer = 1 << 25;
const receiveBuffer = 1 << 20;
const netfilterHeaderLength = 4;

export interface NetlinkTransportOptions extends TableWriterOptions {
  /** Watches over the rules; disposed with the transport. */
  readonly keeper?: RulesKeeper & Disposable;
}

/** Rules and elements over one kept netlink socket. Throws `NativeMissingError` without the addon. */
export function createNetlinkTransport(options: NetlinkTransportOptions): NftTransport {
  return new NetlinkTransport(options);
}

class NetlinkTransport implements NftTransport {
  readonly canAddClasses = true;
  readonly keeper: (RulesKeeper & Disposable) | undefined;
  readonly #own: OwnChanges;
  readonly #exchange: NetlinkExchange;
  readonly #encoder = new BatchEncoder();
  readonly #reader = new ElementReader();
  /** Ends with the read in flight. A caller that awaited it must check again, and then act without another await. */
  #reading: Promise<void> | undefined;

  constructor({ netns, keeper, open = openNetlinkSocket }: NetlinkTransportOptions) {
    this.keeper = keeper;
    this.#own = ownChanges(netns);
    const connect = (): NetlinkSocket => open({ protocol: 'netfilter', sendBuffer, receiveBuffer, netns });
    this.#exchange = new NetlinkExchange(connect, exchangeErrors);
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#own.exclusively(work);
  }

  unwatched(): Disposable {
    return this.#own.unwatched();
  }

  async loadRules(attempt: string, rules: TableDescription, signal: AbortSignal): Promise<void> {
    await this.#custom(attempt, rules.name, (target) => writeTable(target, rules, 'create'), signal);
  }

  async write(attempt: string, request: WriteRequest, signal: AbortSignal): Promise<void> {
    const chains = newChains(request.changes);
    if (this.keeper === undefined || chains.length === 0) return this.#write(attempt, request, signal);
    const { keeper } = this;
    await this.exclusively(async () => {
      await this.#write(attempt, request, signal);
      keeper.markChains(request.table, chains);
    });
  }

  async #write(attempt: string, request: WriteRequest, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#reading !== undefined) await this.#reading;
    const batch = this.#encoder.changes(request);
    this.#send(attempt, request.table, { batch, changes: request.changes });
  }

  async findTable(table: string, signal: AbortSignal): Promise<FoundTable | undefined> {
    signal.throwIfAborted();
    while (this.#reading !== undefined) await this.#reading;
    const errno = this.#exchange.request(requestTable(this.#encoder, table), () => undefined);
    if (errno !== 0) return this.#absent(`cannot look for table inet ${table}`, errno);
    const read = (bytes: Uint8Array, raw: RawElement): number =>
      raw.keyLength === 4 ? readUint32(bytes, raw.key) : Number.NaN;
    return { birthmarks: await this.#elements(table, birthmarkSet, read, signal) };
  }

  async readElements(
    { table, object, suffix }: KernelObject<ElementObject>,
    signal: AbortSignal,
  ): Promise<readonly Element[] | undefined> {
    const layout = objectLayout(`${object}${suffix}`);
    return this.#elements(table, layout.name, (bytes, raw) => elementOf(bytes, raw, layout), signal);
  }

  async readSlots(
    { table, suffix }: SlotMap,
    sets: SlotCounts,
    signal: AbortSignal,
  ): Promise<readonly Element[] | undefined> {
    return this.#alone(signal, async () => {
      const layout = objectLayout(`endpoints${suffix}`);
      const elements: Element[] = [];
      const visit = this.#collector(elements, (bytes, raw) => elementOf(bytes, raw, layout));
      const wanted = sets.values().reduce((sum, slots) => sum + slots, 0);
      if (this.#countOf(table, layout.name) !== wanted) return undefined;
      for (const slots of slotRequests(this.#encoder, { table, name: layout.name, sets })) {
        const errno = this.#exchange.request(slots, visit);
        if (errno !== 0) return this.#absent(`cannot read slots in ${layout.name} of table inet ${table}`, errno);
        await setImmediate();
        signal.throwIfAborted();
      }
      return elements;
    });
  }

  /** Number of elements; undefined before Linux 6.16, or when there is no such object. */
  #countOf(table: string, name: string): number | undefined {
    let count: number | undefined;
    const visit = (bytes: Uint8Array, { start, end }: NetlinkMessage): void => {
      for (const attribute of readAttributes(bytes, start + netfilterHeaderLength, end)) {
        if (attribute.type === NFTA.SET.COUNT) count = readUint32be(bytes, attribute.start);
      }
    };
    const errno = this.#exchange.request(requestSet(this.#encoder, table, name), visit);
    return errno === 0 ? count : this.#absent(`cannot look at ${name} of table inet ${table}`, errno);
  }

  async readCounters(
    { table, object, suffix }: KernelObject<CountedObject | DropSet>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, number> | undefined> {
    const layout = objectLayout(`${object}${suffix}`);
    const read = (bytes: Uint8Array, raw: RawElement): readonly [string, number] | undefined => {
      const packets = packetsOf(bytes, raw) ?? 0;
      return packets > 0 ? [keyOf(bytes, raw, layout), packets] : undefined;
    };
    const items = await this.#elements(table, layout.name, read, signal);
    return items && new Map(items);
  }

  async readIntervals(
    { table, object, suffix }: KernelObject<IntervalObject>,
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    const items = await this.#elements(table, `${object}${suffix}`, boundaryOf, signal);
    const addresses = suffix === '4' ? 'ipv4' : 'ipv6';
    return items && intervalTexts(items, intervalKind(object) === 'interface' ? 'interface' : addresses);
  }

  async writeHeartbeat({ table, suffix, now }: WrittenHeartbeat, signal: AbortSignal): Promise<void> {
    const attempt = `cannot write the heartbeat of table inet ${table}`;
    await this.#custom(attempt, table, (target) => encodeHeartbeat(target, suffix, now), signal);
  }

  async readHeartbeat({ table, suffix }: Heartbeat, signal: AbortSignal): Promise<Millis | undefined> {
    const name = `${heartbeatSet}${suffix}`;
    const ages: Millis[] = [];
    const visit = (bytes: Uint8Array, { start, end }: NetlinkMessage): void => {
      ages.push(...heartbeatAges(bytes, start + netfilterHeaderLength, end));
    };
    const makeRequest = (): NetlinkRequest => requestElements(this.#encoder, table, name);
    const errno = await this.#dump({ makeRequest, visit, items: ages }, signal);
    if (errno !== 0) return this.#absent(`cannot list ${name} of table inet ${table}`, errno);
    return ages.length === 0 ? undefined : millis(Math.min(...ages));
  }

  async readClasses(table: TableName, suffix: FamilySuffix, signal: AbortSignal): Promise<ReadonlyMap<number, string>> {
    const read = (bytes: Uint8Array, raw: RawElement): readonly [number, string] => [
      handleClass(readUint32(bytes, raw.key)),
      raw.chain,
    ];
    return new Map(await this.#elements(table, `lb${suffix}-classes`, read, signal));
  }

  async listObjects(table: string, signal: AbortSignal): Promise<readonly ListedObject[]> {
    const found: ReadSet[] = [];
    const visit = (bytes: Uint8Array, { start, end }: NetlinkMessage): void => {
      const set = readSet(bytes, start + netfilterHeaderLength, end);
      if (set !== undefined) found.push(set);
    };
    const makeRequest = (): NetlinkRequest => requestSets(this.#encoder, table);
    const errno = await this.#dump({ makeRequest, visit, items: found }, signal);
    if (errno !== 0) throw refusedRead(`cannot list table inet ${table}`, errno);
    const listed: ListedObject[] = [];
    for (const { kind, name } of found) {
      const elements = await this.#elements(table, name, () => true, signal);
      listed.push({ kind, name, isEmpty: (elements ?? []).length === 0 });
    }
    return listed;
  }

  async flushObjects(table: string, objects: readonly ListedObject[], signal: AbortSignal): Promise<void> {
    const write = (target: BatchTarget): void => {
      for (const { name } of objects) clearElements(target, name);
    };
    await this.#custom(`cannot empty ${objects.length} objects of table inet ${table}`, table, write, signal);
  }

  async deleteTable(table: string, signal: AbortSignal): Promise<void> {
    const write = ({ writer, begin }: BatchTarget): void => {
      begin(NFT_MSG.DELTABLE, 0, undefined);
      writer.attributeText(NFTA.TABLE.NAME, table);
      writer.endMessage();
    };
    await this.#custom(`cannot delete table inet ${table}`, table, write, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#reading !== undefined) await this.#reading;
    this.keeper?.[Symbol.dispose]();
    this.#exchange[Symbol.dispose]();
  }

  async #custom(attempt: string, table: string, write: WriteBatch, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#reading !== undefined) await this.#reading;
    this.#send(attempt, table, { batch: this.#encoder.custom(table, write), changes: [] });
  }

  #send(attempt: string, table: string, sent: { batch: EncodedBatch; changes: readonly Change[] }): void {
    try {
      const answer = this.#exchange.batch(sent.batch);
      if (answer !== undefined) throw explainRefusal(answer, { attempt, table, ...sent });
      this.#own.noteCommit();
    } catch (cause) {
      if (!isTooLarge(cause)) throw cause;
      const size = sent.batch.bytes.length;
      const message = `${attempt}: the kernel cannot take ${size} bytes in one piece (${cause.errnoName}); nothing of it took effect`;
      throw new NftError(message, { refusal: 'other', cause });
    }
  }

  /** Returns the defined results of `read` for the elements of a map or set; undefined when it does not exist. */
  async #elements<T>(
    table: string,
    name: string,
    read: (bytes: Uint8Array, raw: RawElement) => T | undefined,
    signal: AbortSignal,
  ): Promise<readonly T[] | undefined> {
    const items: T[] = [];
    const visit = this.#collector(items, read);
    const makeRequest = (): NetlinkRequest => requestElements(this.#encoder, table, name);
    const errno = await this.#dump({ makeRequest, visit, items }, signal);
    return errno === 0 ? items : this.#absent(`cannot list ${name} of table inet ${table}`, errno);
  }

  /** Adds the defined results of `read` for the elements of each message. */
  #collector<T>(items: T[], read: (bytes: Uint8Array, raw: RawElement) => T | undefined): NetlinkDump['visit'] {
    return (bytes, { start, end }) =>
      this.#reader.read(bytes, start + netfilterHeaderLength, end, (raw) => {
        const item = read(bytes, raw);
        if (item !== undefined) items.push(item);
      });
  }

  #dump({ makeRequest, visit, items }: DumpInto, signal: AbortSignal): Promise<number> {
    const restart = (): void => {
      items.length = 0;
    };
    return this.#alone(signal, () => this.#exchange.dump({ makeRequest, visit, restart }, signal));
  }

  /** Runs a read of several turns of the event loop when no other one is in flight. */
  async #alone<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    while (this.#reading !== undefined) await this.#reading;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reading = promise;
    try {
      return await read();
    } finally {
      this.#reading = undefined;
      resolve();
    }
  }

  /** Returns for a missing object; throws for any other refusal. */
  #absent(attempt: string, errno: number): undefined {
    const error = refusedRead(attempt, errno);
    if (error.refusal !== 'missing') throw error;
  }
}

function newChains(changes: readonly Change[]): readonly string[] {
  const names: string[] = [];
  for (const change of changes) {
    if (change.kind !== 'class') break;
    names.push(chainName(change.chain, change.suffix));
  }
  return names;
}

type WriteBatch = (target: BatchTarget) => void;
type WrittenHeartbeat = Parameters<NftTransport['writeHeartbeat']>[0];

interface DumpInto extends Pick<NetlinkDump, 'makeRequest' | 'visit'> {
  readonly items: unknown[];
}

function requestTable(encoder: BatchEncoder, table: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETTABLE, flags: NLM_F.REQUEST | NLM_F.ACK }, (writer) =>
    writer.attributeText(NFTA.TABLE.NAME, table),
  );
}

function requestSets(encoder: BatchEncoder, table: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETSET, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) =>
    writer.attributeText(NFTA.SET.TABLE, table),
  );
}

function requestSet(encoder: BatchEncoder, table: string, name: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETSET, flags: NLM_F.REQUEST | NLM_F.ACK }, (writer) => {
    writer.attributeText(NFTA.SET.TABLE, table);
    writer.attributeText(NFTA.SET.NAME, name);
  });
}

function requestElements(encoder: BatchEncoder, table: string, name: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETSETELEM, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) => {
    writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
    writer.attributeText(NFTA.ELEM_LIST.SET, name);
  });
}

/** A map or set in a listing, which does not say whether it has elements. */
type ReadSet = Omit<ListedObject, 'isEmpty'>;

/** Reads one set of a listing; undefined for one that belongs to a rule and has no name of its own. */
function readSet(bytes: Uint8Array, start: number, end: number): ReadSet | undefined {
  let name = '';
  let flags = 0;
  for (const attribute of readAttributes(bytes, start, end)) {
    if (attribute.type === NFTA.SET.NAME) name = readText(bytes, attribute.start, attribute.end);
    if (attribute.type === NFTA.SET.FLAGS) flags = readUint32be(bytes, attribute.start);
  }
  if ((flags & NFT_SET.ANONYMOUS) !== 0) return undefined;
  return { kind: (flags & NFT_SET.MAP) === 0 ? 'set' : 'map', name };
}
