import { type NetlinkSocket, MessageWriter, NativeError, readMessages, readUint32 } from '@switchyard/native';
import type { ForeignObjects, RuleMark } from '../rule-marks.ts';

const nftables = 10;
const batch = { begin: 0x10, end: 0x11 };
const type = {
  deleteChain: (nftables << 8) | 5,
  deleteRule: (nftables << 8) | 8,
  deleteSet: (nftables << 8) | 11,
  addElement: (nftables << 8) | 12,
};
const inet = 1;
const request = 1;
const create = 0x400;
const errorType = 2;

const tableName = 1;
const rule = { chain: 2, handle: 3 };
const chainName = 3;
const setName = 2;
const list = { elements: 3, element: 1, key: 1, value: 1 };

/** A list of elements is one attribute of at most 64 KB; one mark takes 20 bytes. */
const marksPerMessage = 2000;

/** Adds marks to a set of a table, in one transaction. Throws `NativeError`. */
export function addMarks(
  socket: NetlinkSocket,
  set: { readonly table: string; readonly name: string },
  marks: Iterable<RuleMark>,
): void {
  const all = [...marks];
  transact(socket, `cannot mark the rules of table inet ${set.table}`, (message) => {
    for (let at = 0; at < all.length; at += marksPerMessage) {
      message(type.addElement, create, (writer) => {
        writer.attributeText(tableName, set.table);
        writer.attributeText(setName, set.name);
        const elements = writer.beginNested(list.elements);
        for (const mark of all.slice(at, at + marksPerMessage)) writeMark(writer, mark);
        writer.endAttribute(elements);
      });
    }
  });
}

/** Deletes what is not ours from our table, in one transaction: rules, then chains, then sets. Throws `NativeError`. */
export function deleteForeign(socket: NetlinkSocket, table: string, foreign: ForeignObjects): void {
  transact(socket, `cannot delete what somebody added to table inet ${table}`, (message) => {
    for (const { chain, handle } of foreign.rules) {
      message(type.deleteRule, 0, (writer) => {
        writer.attributeText(tableName, table);
        writer.attributeText(rule.chain, chain);
        writer.attributeUint64be(rule.handle, handle);
      });
    }
    const named = (kind: number, attribute: number, name: string): void =>
      message(kind, 0, (writer) => {
        writer.attributeText(tableName, table);
        writer.attributeText(attribute, name);
      });
    for (const name of foreign.chains) named(type.deleteChain, chainName, name);
    for (const name of foreign.sets) named(type.deleteSet, setName, name);
  });
}

/** The mark in a key as the kernel tells it. */
export function readMark(key: Uint8Array): RuleMark {
  return Buffer.from(key.subarray(key.length - markBytes)).toString('hex');
}

const markBytes = 8;

function writeMark(writer: MessageWriter, mark: RuleMark): void {
  const element = writer.beginNested(list.element);
  const key = writer.beginNested(list.key);
  writer.attributeBytes(list.value, Buffer.from(mark, 'hex'));
  writer.endAttribute(key);
  writer.endAttribute(element);
}

type AddMessage = (kind: number, flags: number, attributes: (writer: MessageWriter) => void) => void;

/** All messages or none. Errors are there when the kernel has taken the batch; a success says nothing. */
function transact(socket: NetlinkSocket, attempt: string, build: (message: AddMessage) => void): void {
  const writer = new MessageWriter();
  let sequence = 0;
  const frame = (kind: number): void => {
    writer.beginMessage({ type: kind, flags: request, sequence: ++sequence });
    writer.netfilterHeader(0, nftables);
    writer.endMessage();
  };
  frame(batch.begin);
  build((kind, flags, attributes) => {
    writer.beginMessage({ type: kind, flags: request | flags, sequence: ++sequence });
    writer.netfilterHeader(inet, 0);
    attributes(writer);
    writer.endMessage();
  });
  frame(batch.end);
  socket.send(writer.bytes());
  const errno = firstError(socket);
  if (errno !== 0) throw new NativeError(attempt, { errno, syscall: 'nf_tables commit' }, 'nothing of it took effect');
}

/** Takes all answers; the errno of the first refusal among them, 0 if there is none. */
function firstError(socket: NetlinkSocket): number {
  const buffer = new Uint8Array(1 << 16);
  let errno = 0;
  for (;;) {
    const length = socket.receive(buffer);
    if (length === undefined) return errno;
    for (const { type: kind, start } of readMessages(buffer.subarray(0, length))) {
      if (kind === errorType && errno === 0) errno = -(readUint32(buffer, start) | 0);
    }
  }
}
