import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import {
  MessageWriter,
  NetlinkAsker,
  type NetlinkSocket,
  NLM_F,
  openNetlinkSocket,
  readAttributes,
  readErrno,
  readMessages,
  readText,
} from '@switchyard/native';
import { familyInet, oddTables, writeTable } from './odd-tables.ts';

// Tables of other programs, written in the kernel's own messages: as several versions of nft write them, and as no nft would.

interface Recorded {
  readonly by: string;
  /** Names of its tables of family `inet`. */
  readonly tables: readonly string[];
  /** Base64 of what zlib compressed. */
  readonly messages: string;
}

const file = new URL('../fixtures/foreign-tables.json', import.meta.url);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as readonly Recorded[];

const message = { begin: 0x10, end: 0x11 } as const;
const subsystem = 10;
const nlmsgError = 2;

/** Makes them all in a network namespace. They stay until the result is disposed, and the namespace's end. */
export function makeForeignTables(netns: string): Disposable {
  const socket = openNetlinkSocket({ protocol: 'netfilter', netns, sendBuffer: 1 << 20 });
  for (const { by, messages } of recorded) {
    commit(socket, by, (writer) => writer.raw(inflateSync(Buffer.from(messages, 'base64'))));
  }
  for (const { name, write, isOrphan = false } of oddTables) {
    if (!isOrphan) commit(socket, name, (writer) => write(writer, name));
  }
  using orphaning = openNetlinkSocket({ protocol: 'netfilter', netns });
  for (const { name, write } of oddTables.filter(({ isOrphan }) => isOrphan)) {
    commit(orphaning, name, (writer) => write(writer, name));
  }
  return socket;
}

/** Names of all tables of family `inet` that are made. */
export const foreignTables: readonly string[] = [
  ...recorded.flatMap(({ tables }) => tables),
  ...oddTables.map(({ name }) => name),
];

/** Kinds of objects that can be listed of a table: GET message, and the attribute with the table's name. */
const lists = {
  chains: { type: 0xa04, table: 1 },
  rules: { type: 0xa07, table: 1 },
  sets: { type: 0xa0a, table: 1 },
  objects: { type: 0xa13, table: 1 },
} as const;

/** How many chains, rules, sets and objects each of them has. */
export function countParts(netns: string): ReadonlyMap<string, number> {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const asker = new NetlinkAsker(socket, { attempt: 'cannot list foreign tables', code: 'test' });
  const counts = new Map<string, number>();
  for (const [kind, { type, table }] of Object.entries(lists)) {
    asker.dump(
      type,
      (writer) => writer.netfilterHeader(familyInet, 0),
      (bytes, { start, end }) => {
        for (const attribute of readAttributes(bytes, start + 4, end)) {
          if (attribute.type !== table) continue;
          const name = readText(bytes, attribute.start, attribute.end);
          if (foreignTables.includes(name)) counts.set(`${name} ${kind}`, (counts.get(`${name} ${kind}`) ?? 0) + 1);
        }
        return undefined;
      },
    );
  }
  return counts;
}

/** Makes the tables of a kube-proxy in nftables mode, empty. */
export function makeKubeProxyTables(netns: string): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  commit(socket, 'kube-proxy', (writer) => {
    for (const family of [2, 10]) writeTable(writer, 'kube-proxy', {}, family);
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
