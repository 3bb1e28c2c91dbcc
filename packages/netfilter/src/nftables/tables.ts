import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  NetlinkAsker,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  openNetlinkSocket,
  readAttributes,
  readErrno,
  readText,
  type WriteBody,
  receiveAnswers,
} from '@switchyard/native';

/** The family of a table, as nft spells it. */
export type TableFamily = 'inet' | 'ip' | 'ip6';

/** A table of any owner. */
export interface TablePlace {
  readonly family: TableFamily;
  readonly table: string;
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
}

/** NFPROTO_... */
const familyNumbers: Readonly<Record<TableFamily, number>> = { inet: 1, ip: 2, ip6: 10 };
/** nf_tables.h, the subsystem in the high byte; NFNL_MSG_BATCH_... */
const messages = { getTable: 0xa01, deleteTable: 0xa02, getChain: 0xa04, begin: 0x10, end: 0x11 } as const;
const subsystem = 10;
const nameOfTable = 1;
const chainAttributes = { table: 1, name: 3 } as const;
/** Length of `struct nfgenmsg`. */
const headerLength = 4;
const { EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT } = constants.errno;

/**
 * Names of the tables of one family. Reads no set and no rule, so what others keep in their tables does not matter. None where the
 * kernel has no nftables. Throws `HostError`.
 */
export function listTables(family: TableFamily, netns?: string): readonly string[] {
  return orNone([], () =>
    withSocket(netns, (socket) => {
      const asker = askerFor(socket, `list the nftables tables of family ${family}`);
      const found = asker.dump(messages.getTable, header(family), (bytes, { start, end }) =>
        textOf(bytes.subarray(start + headerLength, end), nameOfTable),
      );
      return found;
    }),
  );
}

/** Names of the chains of a table; none where there is no such table. Reads neither rules nor sets. Throws `HostError`. */
export function listChains({ family, table, netns }: TablePlace): readonly string[] {
  return orNone([], () =>
    withSocket(netns, (socket) => {
      const asker = askerFor(socket, `list the chains of table ${family} ${table}`);
      const body: WriteBody = (writer) => {
        header(family)(writer);
        writer.attributeText(chainAttributes.table, table);
      };
      return asker.dump(messages.getChain, body, (bytes, { start, end }) => {
        const attributes = bytes.subarray(start + headerLength, end);
        // Older kernels list the chains of all tables.
        return textOf(attributes, chainAttributes.table) === table
          ? textOf(attributes, chainAttributes.name)
          : undefined;
      });
    }),
  );
}

/** Deletes a table with all that is in it. False where there is none. Throws `HostError`. */
export function deleteTable({ family, table, netns }: TablePlace): boolean {
  return orNone(false, () =>
    withSocket(netns, (socket) => {
      const writer = new MessageWriter();
      const message = (type: number, sequence: number, flags: number, write: WriteBody): void => {
        writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence });
        write(writer);
        writer.endMessage();
      };
      const envelope: WriteBody = () => writer.netfilterHeader(0, subsystem);
      message(messages.begin, 1, 0, envelope);
      message(messages.deleteTable, 2, NLM_F.ACK, () => {
        header(family)(writer);
        writer.attributeText(nameOfTable, table);
      });
      message(messages.end, 3, 0, envelope);
      socket.send(writer.bytes());
      const errno = answerOf(socket);
      if (errno === 0) return true;
      if (errno === ENOENT) return false;
      throw new NativeError(`cannot delete nftables table ${family} ${table}`, { errno, syscall: 'nf_tables commit' });
    }),
  );
}

/** The first errno among the answers; 0 for success. */
function answerOf(socket: NetlinkSocket): number {
  const errnos: number[] = [];
  for (const [{ type, start }, bytes] of receiveAnswers(socket)) {
    if (type === NLMSG.ERROR) errnos.push(readErrno(bytes, start));
  }
  if (errnos.length === 0) {
    throw new HostError(
      'nftables.noAnswer',
      'cannot delete an nftables table: the kernel did not answer; try it again',
    );
  }
  return errnos.find((errno) => errno !== 0) ?? 0;
}

function withSocket<T>(netns: string | undefined, work: (socket: NetlinkSocket) => T): T {
  using socket = openNetlinkSocket({ protocol: 'netfilter', ...(netns === undefined ? {} : { netns }) });
  return work(socket);
}

function askerFor(socket: NetlinkSocket, what: string): NetlinkAsker {
  return new NetlinkAsker(socket, { attempt: `cannot ${what}`, code: 'nftables' });
}

/** A kernel without nftables, or a table that is not there. */
function orNone<T>(none: T, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof NativeError && absences.has(error.errno)) return none;
    throw error;
  }
}

const absences: ReadonlySet<number> = new Set([EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT]);

function header(family: TableFamily): WriteBody {
  return (writer) => writer.netfilterHeader(familyNumbers[family], 0);
}

function textOf(attributes: Uint8Array, wanted: number): string {
  for (const { type, start, end } of readAttributes(attributes, 0, attributes.length)) {
    if (type === wanted) return readText(attributes, start, end);
  }
  return '';
}
