import { type MessageWriter, NLM_F } from '@switchyard/native';

// Tables that no version of nft writes: names, flags, types, attributes and user data that only raw messages can have.

const message = {
  newTable: 0xa00,
  newChain: 0xa03,
  newRule: 0xa06,
  newSet: 0xa09,
  newElement: 0xa0c,
  newObject: 0xa12,
};
export const familyInet = 1;

/** Flags of a table: inactive; bound to the socket that made it; kept when that socket closes. */
const tableFlags = { dormant: 0x1, owner: 0x2, persist: 0x4 } as const;

/** User data that breaks the form that nft gives it. */
const brokenNotes: readonly Uint8Array[] = [
  Uint8Array.of(),
  Uint8Array.of(3, 0),
  Uint8Array.of(3, 200, 1, 2), // longer than what is there
  Uint8Array.of(7, 3, 0x61, 0x62, 0x63), // a comment without an end
  Uint8Array.from({ length: 250 }, (_, index) => 255 - index),
  Uint8Array.of(3, 8, 0, 4, 0xff, 0xff, 0xff, 0xff, 1, 0), // an expression that no nft knows
];

export interface OddTable {
  readonly name: string;
  readonly write: (writer: MessageWriter, name: string) => void;
  /** Whether its socket is closed at once. */
  readonly isOrphan?: boolean;
}

export const oddTables: readonly OddTable[] = [
  { name: 'odd-dormant', write: (writer, table) => writeFlagged(writer, table, tableFlags.dormant) },
  { name: 'odd-owned', write: (writer, table) => writeFlagged(writer, table, tableFlags.owner) },
  {
    name: 'odd-owned-dormant',
    write: (writer, table) => writeFlagged(writer, table, tableFlags.owner | tableFlags.dormant),
  },
  {
    name: 'odd-orphan',
    write: (writer, table) => writeFlagged(writer, table, tableFlags.owner | tableFlags.persist),
    isOrphan: true,
  },
  { name: 'odd-notes', write: writeNotes },
  {
    name: 'odd-types',
    write: (writer, table) => {
      writeTable(writer, table, {});
      writeSet(writer, { table, name: 's', notes: Uint8Array.of(), keyType: 0x3fff_ffff });
    },
  },
  {
    name: 'odd-attributes',
    write: (writer, table) => {
      writeTable(writer, table, { unknown: true });
      writeChain(writer, { table, notes: Uint8Array.of(), unknown: true });
      writeRule(writer, { table, notes: Uint8Array.of(1), unknown: true });
      writeSet(writer, { table, name: 's', notes: Uint8Array.of(), unknown: true });
      writeElement(writer, { table, notes: Uint8Array.of(1), unknown: true });
      writeCounter(writer, { table, notes: Uint8Array.of(1), unknown: true });
    },
  },
  { name: 'odd "name" { };\n # end', write: (writer, table) => writeFlagged(writer, table, 0) },
  { name: 'n'.repeat(255), write: (writer, table) => writeFlagged(writer, table, 0) },
];

/** Broken user data at everything that can have some. */
function writeNotes(writer: MessageWriter, table: string): void {
  writeTable(writer, table, { notes: Uint8Array.from({ length: 250 }, (_, index) => index) });
  for (const [index, notes] of brokenNotes.entries()) {
    const place = { table, notes, suffix: index };
    writeChain(writer, place);
    writeSet(writer, { table, name: `s${index}`, notes });
    // These have no user data rather than empty ones.
    if (notes.length === 0) continue;
    writeRule(writer, place);
    writeElement(writer, place);
    writeCounter(writer, place);
  }
}

function writeFlagged(writer: MessageWriter, table: string, flags: number): void {
  writeTable(writer, table, { flags });
  writeSet(writer, { table, name: 'plain', notes: Uint8Array.of(3, 0) });
}

interface TableOptions {
  readonly flags?: number;
  readonly notes?: Uint8Array;
  readonly unknown?: boolean;
}

export function writeTable(writer: MessageWriter, name: string, options: TableOptions, family = familyInet): void {
  const { flags = 0, notes, unknown } = options;
  begin(writer, message.newTable, family);
  writer.attributeText(1, name);
  writer.attributeUint32be(2, flags);
  if (notes !== undefined) writer.attributeBytes(6, notes);
  end(writer, unknown);
}

interface Place {
  readonly table: string;
  /** User data. */
  readonly notes: Uint8Array;
  /** End of the names; default: 0. */
  readonly suffix?: number;
  /** Whether an attribute is added whose number no kernel knows. */
  readonly unknown?: boolean;
}

interface OddSet extends Place {
  readonly name: string;
  readonly keyType?: number;
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
  end(writer, unknown);
}

function writeElement(writer: MessageWriter, { table, notes, suffix = 0, unknown }: Place): void {
  begin(writer, message.newElement);
  writer.attributeText(1, table);
  writer.attributeText(2, suffix === 0 ? 's' : `s${suffix}`);
  const elements = writer.beginNested(3);
  const element = writer.beginNested(1);
  const key = writer.beginNested(1);
  writer.attributeUint32be(1, suffix + 1);
  writer.endAttribute(key);
  writer.attributeBytes(6, notes);
  writer.endAttribute(element);
  writer.endAttribute(elements);
  end(writer, unknown);
}

function writeChain(writer: MessageWriter, { table, notes, suffix = 0, unknown }: Place): void {
  begin(writer, message.newChain);
  writer.attributeText(1, table);
  writer.attributeText(3, `c${suffix}`);
  writer.attributeBytes(12, notes);
  end(writer, unknown);
}

function writeRule(writer: MessageWriter, { table, notes, suffix = 0, unknown }: Place): void {
  begin(writer, message.newRule);
  writer.attributeText(1, table);
  writer.attributeText(2, `c${suffix}`);
  writer.endAttribute(writer.beginNested(4));
  writer.attributeBytes(7, notes);
  end(writer, unknown);
}

function writeCounter(writer: MessageWriter, { table, notes, suffix = 0, unknown }: Place): void {
  begin(writer, message.newObject);
  writer.attributeText(1, table);
  writer.attributeText(2, `o${suffix}`);
  writer.attributeUint32be(3, 1);
  writer.endAttribute(writer.beginNested(4));
  writer.attributeBytes(8, notes);
  end(writer, unknown);
}

function begin(writer: MessageWriter, type: number, family = familyInet): void {
  writer.beginMessage({ type, flags: NLM_F.REQUEST | NLM_F.CREATE | NLM_F.ACK, sequence: 1 });
  writer.netfilterHeader(family, 0);
}

function end(writer: MessageWriter, unknown = false): void {
  if (unknown) writer.attributeText(250, 'of a kernel to come');
  writer.endMessage();
}
