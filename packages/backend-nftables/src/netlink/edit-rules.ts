import { type NetlinkSocket, MessageWriter, NativeError, readMessages, readUint32 } from '@switchyard/native';
import { BATCH, familyInet, NFT_MSG, NFTA, NLM_F, NLMSG, subsystem } from './constants.ts';
import type { ForeignObjects, RuleMark } from '../rule-marks.ts';

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
      message(NFT_MSG.NEWSETELEM, NLM_F.CREATE, (writer) => {
        writer.attributeText(NFTA.ELEM_LIST.TABLE, set.table);
        writer.attributeText(NFTA.ELEM_LIST.SET, set.name);
        const elements = writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
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
      message(NFT_MSG.DELRULE, 0, (writer) => {
        writer.attributeText(NFTA.RULE.TABLE, table);
        writer.attributeText(NFTA.RULE.CHAIN, chain);
        writer.attributeUint64be(NFTA.RULE.HANDLE, handle);
      });
    }
    const named = (
      kind: number,
      { TABLE, NAME }: { readonly TABLE: number; readonly NAME: number },
      name: string,
    ): void =>
      message(kind, 0, (writer) => {
        writer.attributeText(TABLE, table);
        writer.attributeText(NAME, name);
      });
    for (const name of foreign.chains) named(NFT_MSG.DELCHAIN, NFTA.CHAIN, name);
    for (const name of foreign.sets) named(NFT_MSG.DELSET, NFTA.SET, name);
  });
}

/** The mark in a key as the kernel tells it. */
export function readMark(key: Uint8Array): RuleMark {
  return Buffer.from(key.subarray(key.length - markBytes)).toString('hex');
}

const markBytes = 8;

function writeMark(writer: MessageWriter, mark: RuleMark): void {
  const element = writer.beginNested(NFTA.LIST.ELEM);
  const key = writer.beginNested(NFTA.ELEM.KEY);
  writer.attributeBytes(NFTA.DATA.VALUE, Buffer.from(mark, 'hex'));
  writer.endAttribute(key);
  writer.endAttribute(element);
}

type AddMessage = (kind: number, flags: number, attributes: (writer: MessageWriter) => void) => void;

/** All messages or none. Errors are there when the kernel has taken the batch; a success says nothing. */
function transact(socket: NetlinkSocket, attempt: string, build: (message: AddMessage) => void): void {
  const writer = new MessageWriter();
  let sequence = 0;
  const frame = (kind: number): void => {
    writer.beginMessage({ type: kind, flags: NLM_F.REQUEST, sequence: ++sequence });
    writer.netfilterHeader(0, subsystem);
    writer.endMessage();
  };
  frame(BATCH.BEGIN);
  build((kind, flags, attributes) => {
    writer.beginMessage({ type: kind, flags: NLM_F.REQUEST | flags, sequence: ++sequence });
    writer.netfilterHeader(familyInet, 0);
    attributes(writer);
    writer.endMessage();
  });
  frame(BATCH.END);
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
      if (kind === NLMSG.ERROR && errno === 0) errno = -(readUint32(buffer, start) | 0);
    }
  }
}
