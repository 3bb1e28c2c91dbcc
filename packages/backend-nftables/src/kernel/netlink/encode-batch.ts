import { aligned, MessageWriter, nestedFlag, NLM_F } from '@switchyard/native';
import type { Change, ElementChange } from '../../render/elements.ts';
import type { WriteRequest } from '../transport.ts';
import { BATCH, familyInet, maxListLength, NFT_MSG, NFTA, subsystem } from './constants.ts';
import { writeClass } from './encode-class.ts';
import { writeIntervals } from './encode-intervals.ts';
import { type ObjectLayout, objectLayout, PartWriter } from './part-writer.ts';

/** One message of a batch, for finding the change that an answer is about. */
export interface SentMessage {
  readonly sequence: number;
  /** Where it begins in the batch. */
  readonly offset: number;
  /** The object it is about, if there is one. */
  readonly object: string | undefined;
  /** The change that its first element belongs to. */
  readonly firstChange: number;
  /** Whether each element is a change of its own; else all of the message belongs to the first. */
  readonly isPerElement: boolean;
}

/** A transaction ready to be sent. `bytes` is valid until the next one is encoded. */
export interface EncodedBatch {
  readonly bytes: Uint8Array;
  /** In order, without begin and end. The last one has NLM_F_ACK; its acknowledgement proves the commit. */
  readonly messages: readonly SentMessage[];
}

/** A batch under construction, for functions that write its messages. */
export interface BatchTarget {
  readonly writer: MessageWriter;
  readonly table: string;
  /** Begins a message of the batch; returns nothing to be kept. It is ended by `endMessage` of the writer. */
  begin(type: number, flags: number, object: string | undefined): void;
}

/** Encodes transactions into one buffer that is used again and again. */
export class BatchEncoder {
  readonly #writer = new MessageWriter();
  readonly #parts = new PartWriter(this.#writer);
  #sequence = 0;
  #messages: SentMessage[] = [];
  #change = 0;
  #table = '';
  /** The open list of elements: its attribute, what it is of, and whether they are added. */
  #list = -1;
  #layout: ObjectLayout | undefined;
  #verb: ElementChange['kind'] = 'add';

  /** One transaction out of ordered changes. Neighbours of a kind share a message. */
  changes({ table, changes }: WriteRequest): EncodedBatch {
    this.#begin(table);
    for (this.#change = 0; this.#change < changes.length; this.#change++) {
      const change = changes[this.#change];
      if (change !== undefined) this.#encode(change);
    }
    this.#endList();
    return this.#end();
  }

  /** One transaction out of messages of other kinds. */
  custom(table: string, write: (target: BatchTarget) => void): EncodedBatch {
    this.#begin(table);
    write(this.#target());
    return this.#end();
  }

  /** The same without an end: the kernel checks everything, answers, and takes all of it back. */
  trial(table: string, write: (target: BatchTarget) => void): EncodedBatch {
    this.#begin(table);
    write(this.#target());
    return this.#answered();
  }

  /** A single request outside of a transaction. */
  request(header: { readonly type: number; readonly flags: number }, write: (writer: MessageWriter) => void): Sent {
    const sequence = this.#nextSequence();
    this.#writer.clear();
    this.#writer.beginMessage({ ...header, sequence });
    this.#writer.netfilterHeader(familyInet, 0);
    write(this.#writer);
    this.#writer.endMessage();
    return { bytes: this.#writer.bytes(), sequence };
  }

  #encode(change: Change): void {
    switch (change.kind) {
      case 'add':
      case 'delete':
        return this.#element(change);
      case 'replace':
        this.#endList();
        return writeIntervals(this.#target(), change);
      case 'class':
        this.#endList();
        return writeClass(this.#target(), change);
    }
  }

  #element(change: ElementChange): void {
    const layout = this.#openList(change);
    const { key, data, isInterval } = layout;
    const keySize = 4 + aligned(key.length);
    const isWithData = data.length > 0 && change.kind === 'add';
    const dataSize = isWithData ? 8 + aligned(data.length) : 0;
    const writer = this.#writer;
    const from = layout.name.length + 1;
    writer.attributeHeader(NFTA.LIST.ELEM | nestedFlag, (4 + keySize) * (isInterval ? 2 : 1) + dataSize);
    writer.attributeHeader(NFTA.ELEM.KEY | nestedFlag, keySize);
    writer.attributeHeader(NFTA.DATA.VALUE, key.length);
    this.#parts.write(change.id, from, key);
    writer.pad();
    if (isWithData) {
      writer.attributeHeader(NFTA.ELEM.DATA | nestedFlag, 4 + aligned(data.length));
      writer.attributeHeader(NFTA.DATA.VALUE, data.length);
      this.#parts.write(change.data, 0, data);
      writer.pad();
    }
    if (!isInterval) return;
    writer.attributeHeader(NFTA.ELEM.KEY_END | nestedFlag, keySize);
    writer.attributeHeader(NFTA.DATA.VALUE, key.length);
    this.#parts.write(change.id, from, key, 'last');
    writer.pad();
  }

  /** Makes sure that the open list is the one this change belongs to. */
  #openList({ kind, id }: ElementChange): ObjectLayout {
    const open = this.#layout;
    const isSame =
      this.#list >= 0 &&
      open !== undefined &&
      this.#verb === kind &&
      id.charCodeAt(open.name.length) === 0x20 &&
      id.startsWith(open.name) &&
      this.#writer.length - this.#list < maxListLength;
    if (isSame) return open;
    this.#endList();
    const layout = objectLayout(id.slice(0, id.indexOf(' ')));
    const isAdd = kind === 'add';
    // Without NLM_F_EXCL: an existing element is no error, unless it has other data.
    const [type, flags] = isAdd ? [NFT_MSG.NEWSETELEM, NLM_F.CREATE] : [NFT_MSG.DELSETELEM, 0];
    this.#beginMessage(type, flags, { object: layout.name, isPerElement: true });
    this.#writer.attributeText(NFTA.ELEM_LIST.TABLE, this.#table);
    this.#writer.attributeText(NFTA.ELEM_LIST.SET, layout.name);
    this.#list = this.#writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
    this.#layout = layout;
    this.#verb = kind;
    return layout;
  }

  #endList(): void {
    if (this.#list < 0) return;
    this.#writer.endAttribute(this.#list);
    this.#writer.endMessage();
    this.#list = -1;
  }

  #target(): BatchTarget {
    return {
      writer: this.#writer,
      table: this.#table,
      begin: (type, flags, object) => this.#beginMessage(type, flags, { object, isPerElement: false }),
    };
  }

  #begin(table: string): void {
    this.#table = table;
    this.#messages = [];
    this.#list = -1;
    this.#writer.clear();
    this.#envelope(BATCH.BEGIN);
  }

  #end(): EncodedBatch {
    this.#answered();
    this.#envelope(BATCH.END);
    return { bytes: this.#writer.bytes(), messages: this.#messages };
  }

  #answered(): EncodedBatch {
    const last = this.#messages.at(-1);
    // The batch's own end is acknowledged by recent kernels only; its last message by all.
    if (last !== undefined) this.#writer.addFlags(last.offset, NLM_F.ACK);
    return { bytes: this.#writer.bytes(), messages: this.#messages };
  }

  #envelope(type: number): void {
    this.#writer.beginMessage({ type, flags: NLM_F.REQUEST, sequence: this.#nextSequence() });
    this.#writer.netfilterHeader(0, subsystem);
    this.#writer.endMessage();
  }

  #beginMessage(type: number, flags: number, what: Pick<SentMessage, 'object' | 'isPerElement'>): void {
    const sequence = this.#nextSequence();
    this.#messages.push({ sequence, offset: this.#writer.length, firstChange: this.#change, ...what });
    this.#writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence });
    this.#writer.netfilterHeader(familyInet, 0);
  }

  /** 0 is left out: it is what notifications carry. */
  #nextSequence(): number {
    this.#sequence = this.#sequence >= 0xffffffff ? 1 : this.#sequence + 1;
    return this.#sequence;
  }
}

/** A request, and the number that its answers carry. */
export interface Sent {
  readonly bytes: Uint8Array;
  readonly sequence: number;
}
