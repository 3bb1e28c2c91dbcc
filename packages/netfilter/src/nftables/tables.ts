import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  openNetlinkSocket,
  readErrno,
  receiveAnswers,
  type WriteBody,
} from '@switchyard/native';
import { BATCH, familyNumbers, NFT_MSG, NFTA, subsystem } from './constants.ts';
import { RulesReader, type TableFamily } from './rules-reader.ts';

/** A table of any owner. */
export interface TablePlace {
  readonly family: TableFamily;
  readonly table: string;
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
}

/** Names of the tables of one family; none where the kernel has no nftables. Reads no set and no rule. Throws `HostError`. */
export function listTables(family: TableFamily, netns?: string): readonly string[] {
  return withSocket(netns, [], (socket) => {
    const attempt = `cannot list the nftables tables of family ${family}`;
    return new RulesReader(socket, { attempt, code: 'nftables' }, family).tables();
  });
}

/** Names of the chains of a table; none where there is no such table. Reads neither rules nor sets. Throws `HostError`. */
export function listChains({ family, table, netns }: TablePlace): readonly string[] {
  return withSocket(netns, [], (socket) => {
    const attempt = `cannot list the chains of table ${family} ${table}`;
    const chains = new RulesReader(socket, { attempt, code: 'nftables' }, family).chains(table);
    return chains.map(({ name }) => name);
  });
}

/** Deletes a table with all that is in it. False where there is none. Throws `HostError`. */
export function deleteTable({ family, table, netns }: TablePlace): boolean {
  return withSocket(netns, false, (socket) => {
    const writer = new MessageWriter();
    const message = (type: number, sequence: number, flags: number, write: WriteBody): void => {
      writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence });
      write(writer);
      writer.endMessage();
    };
    const envelope: WriteBody = () => writer.netfilterHeader(0, subsystem);
    message(BATCH.BEGIN, 1, 0, envelope);
    message(NFT_MSG.DELTABLE, 2, NLM_F.ACK, () => {
      writer.netfilterHeader(familyNumbers[family], 0);
      writer.attributeText(NFTA.TABLE.NAME, table);
    });
    message(BATCH.END, 3, 0, envelope);
    socket.send(writer.bytes());
    const errno = firstErrno(socket);
    if (errno === undefined) {
      const text = 'cannot delete an nftables table: the kernel did not answer; try it again';
      throw new HostError('nftables.noAnswer', text);
    }
    if (errno === 0) return true;
    throw new NativeError(`cannot delete nftables table ${family} ${table}`, { errno, syscall: 'nf_tables commit' });
  });
}

/** Takes all answers to a transaction. The errno of its first refusal, 0 for success; undefined without an answer. */
export function firstErrno(socket: NetlinkSocket): number | undefined {
  let first: number | undefined;
  for (const [{ type, start }, bytes] of receiveAnswers(socket)) {
    if (type === NLMSG.ERROR) first = first || readErrno(bytes, start);
  }
  return first;
}

const { EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT } = constants.errno;
const absences: ReadonlySet<number> = new Set([EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT]);

/** Returns `none` for a kernel without nftables, or a table that is not there. */
function withSocket<T>(netns: string | undefined, none: T, work: (socket: NetlinkSocket) => T): T {
  try {
    using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
    return work(socket);
  } catch (error) {
    if (error instanceof NativeError && absences.has(error.errno)) return none;
    throw error;
  }
}
