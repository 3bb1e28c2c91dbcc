import { NativeError, type NetlinkSocket } from '@switchyard/native';
import { firstErrno, NFT_MSG, NFTA } from '@switchyard/netfilter';
import { BatchEncoder, type BatchTarget } from './encode-batch.ts';
import type { ForeignObjects, RuleMark } from '../rule-marks.ts';
import { addElements, deleteChain, deleteRules, writeElement, writeKey } from './write-objects.ts';

/** A list of elements is one attribute of at most 64 KB; one mark takes 20 bytes. */
const marksPerMessage = 2000;

export function addMarks(
  socket: NetlinkSocket,
  set: { readonly table: string; readonly name: string },
  marks: Iterable<RuleMark>,
): void {
  const all = [...marks];
  const attempt = `cannot mark the rules of table inet ${set.table}`;
  transact(socket, { attempt, table: set.table }, (target) => {
    for (let at = 0; at < all.length; at += marksPerMessage) {
      addElements(target, set.name, (writer) => {
        for (const mark of all.slice(at, at + marksPerMessage)) {
          writeElement(writer, () => writeKey(writer, Buffer.from(mark, 'hex')));
        }
      });
    }
  });
}

/** Deletes foreign objects from our table in one transaction: rules, then chains, then sets. Throws `NativeError`. */
export function deleteForeign(socket: NetlinkSocket, table: string, foreign: ForeignObjects): void {
  const attempt = `cannot delete foreign objects from table inet ${table}`;
  transact(socket, { attempt, table }, (target) => {
    for (const { chain, handle } of foreign.rules) deleteRules(target, chain, handle);
    for (const name of foreign.chains) deleteChain(target, name);
    for (const name of foreign.sets) {
      target.begin(NFT_MSG.DELSET, 0, name);
      target.writer.attributeText(NFTA.SET.TABLE, table);
      target.writer.attributeText(NFTA.SET.NAME, name);
      target.writer.endMessage();
    }
  });
}

/** Returns the mark in a key that the kernel reported. */
export function readMark(key: Uint8Array): RuleMark {
  return Buffer.from(key.subarray(key.length - markBytes)).toString('hex');
}

const markBytes = 8;

interface Transaction {
  readonly attempt: string;
  readonly table: string;
}

/** Commits all messages or none. The kernel queues errors before `send` returns. */
function transact(socket: NetlinkSocket, { attempt, table }: Transaction, write: (target: BatchTarget) => void): void {
  socket.send(new BatchEncoder().custom(table, write).bytes);
  const errno = firstErrno(socket) ?? 0;
  if (errno !== 0) throw new NativeError(attempt, { errno, syscall: 'nf_tables commit' }, 'nothing of it took effect');
}
