import { readFileSync } from 'node:fs';
import {
  MessageWriter,
  type NetlinkSocket,
  NLM_F,
  openNetlinkSocket,
  readErrno,
  readMessages,
} from '@switchyard/native';

// Tables of other programs, written in the kernel's own messages: as several versions of nft write them, and as no nft would.

interface Recorded {
  readonly by: string;
  readonly messages: string;
}

const file = new URL('../fixtures/foreign-tables.json', import.meta.url);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as readonly Recorded[];

const message = { begin: 0x10, end: 0x11, newTable: 0xa00, newSet: 0xa09 } as const;
const familyInet = 1;
const subsystem = 10;
const nlmsgError = 2;

/** Flags of a table: it does nothing; it ends with the socket that made it. */
const tableFlags = { dormant: 0x1, owner: 0x2 } as const;

/** Makes them all in a network namespace. They stay until the result is disposed, and the namespace's end. */
export function makeForeignTables(netns: string): Disposable {
  const socket = openNetlinkSocket({ protocol: 'netfilter', netns, sendBuffer: 1 << 20 });
  for (const { by, messages } of recorded) commit(socket, by, (writer) => writer.raw(Buffer.from(messages, 'hex')));
  for (const { name, write } of oddTables) commit(socket, name, write);
  return socket;
}

/** Names of all tables of family `inet` that are made. */
export const foreignTables: readonly string[] = [
  'theirs-0-9-8',
  'theirs-1-0-6',
  'theirs-1-1-3',
  'theirs-1-1-7',
  'odd-dormant',
  'odd-owned',
  'odd-notes',
  'odd-types',
];

interface OddTable {
  readonly name: string;
  readonly write: (writer: MessageWriter) => void;
}

const oddTables: readonly OddTable[] = [
  {
    name: 'odd-dormant',
    write: (writer) => {
      writeTable(writer, 'odd-dormant', tableFlags.dormant);
      writeSet(writer, { table: 'odd-dormant', name: 'plain', notes: Uint8Array.of(3, 0) });
    },
  },
  {
    name: 'odd-owned',
    write: (writer) => {
      writeTable(writer, 'odd-owned', tableFlags.owner);
      writeSet(writer, { table: 'odd-owned', name: 'plain', notes: Uint8Array.of() });
    },
  },
  {
    name: 'odd-notes',
    write: (writer) => {
      writeTable(
        writer,
        'odd-notes',
        0,
        Uint8Array.from({ length: 250 }, (_, index) => index),
      );
      const notes = [
        Uint8Array.of(3, 200, 1, 2), // longer than what is there
        Uint8Array.of(7, 3, 0x61, 0x62, 0x63), // a comment without an end
        Uint8Array.from({ length: 256 }, (_, index) => 255 - index),
        Uint8Array.of(3, 8, 0, 4, 0xff, 0xff, 0xff, 0xff, 1, 0), // an expression that no nft knows
      ];
      for (const [index, one] of notes.entries())
        writeSet(writer, { table: 'odd-notes', name: `s${index}`, notes: one });
    },
  },
  {
    name: 'odd-types',
    write: (writer) => {
      writeTable(writer, 'odd-types', 0);
      writeSet(writer, { table: 'odd-types', name: 's', notes: Uint8Array.of(), keyType: 0x3fff_ffff, unknown: 250 });
    },
  },
];

function writeTable(writer: MessageWriter, name: string, flags: number, notes?: Uint8Array): void {
  begin(writer, message.newTable);
  writer.attributeText(1, name);
  writer.attributeUint32be(2, flags);
  if (notes !== undefined) writer.attributeBytes(6, notes);
  writer.endMessage();
}

interface OddSet {
  readonly table: string;
  readonly name: string;
  /** User data. */
  readonly notes: Uint8Array;
  readonly keyType?: number;
  /** Number of an attribute that no kernel has. */
  readonly unknown?: number;
}

function writeSet(writer: MessageWriter, { table, name, notes, keyType = 7, unknown }: OddSet): void {
  begin(writer, message.newSet);
  writer.attributeText(1, table);
  writer.attributeText(2, name);
  writer.attributeUint32be(3, 0);
  writer.attributeUint32be(4, keyType);
  writer.attributeUint32be(5, 4);
  writer.attributeUint32be(10, 1);
  writer.attributeBytes(13, notes);
  if (unknown !== undefined) writer.attributeText(unknown, 'of a kernel to come');
  writer.endMessage();
}

function begin(writer: MessageWriter, type: number, family: number = familyInet): void {
  writer.beginMessage({ type, flags: NLM_F.REQUEST | NLM_F.CREATE | NLM_F.ACK, sequence: 1 });
  writer.netfilterHeader(family, 0);
}

/** Makes the tables of a kube-proxy in nftables mode, empty. */
export function makeKubeProxyTables(netns: string): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  commit(socket, 'kube-proxy', (writer) => {
    for (const family of [2, 10]) {
      begin(writer, message.newTable, family);
      writer.attributeText(1, 'kube-proxy');
      writer.endMessage();
    }
  });
}

/** One transaction. Throws when the kernel refuses it. */
function commit(socket: NetlinkSocket, what: string, write: (writer: MessageWriter) => void): void {
  const writer = new MessageWriter();
  const envelope = (type: number): void => {
    writer.beginMessage({ type, flags: NLM_F.REQUEST, sequence: 0 });
    writer.netfilterHeader(0, subsystem);
    writer.endMessage();
  };
  envelope(message.begin);
  write(writer);
  envelope(message.end);
  socket.send(writer.bytes());
  const buffer = new Uint8Array(1 << 16);
  for (let length = socket.receive(buffer); length !== undefined; length = socket.receive(buffer)) {
    for (const { type, start } of readMessages(buffer.subarray(0, length))) {
      const errno = type === nlmsgError ? readErrno(buffer, start) : 0;
      if (errno !== 0) throw new Error(`the kernel refused the tables of ${what}: errno ${errno}`);
    }
  }
}
