import { constants } from 'node:os';
import {
  MessageWriter,
  NetlinkExchange,
  type NetlinkRequest,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  NLMSGERR,
} from '@switchyard/native';
import { type Scripted, ScriptedSocket } from '@switchyard/native/testing';
import { NFT_MSG } from '@switchyard/netfilter';
import { describe, expect, test } from 'vitest';
import type { Change } from '../../render/elements.ts';
import { exchangeErrors, explainRefusal } from './refusals.ts';
import { BatchEncoder, type EncodedBatch } from './encode-batch.ts';

const { signal } = new AbortController();

class Exchange extends NetlinkExchange {
  constructor(open: () => NetlinkSocket) {
    super(open, exchangeErrors);
  }
}

/** A socket that answers from a script. */
function scripted(...answers: readonly Scripted[]): ScriptedSocket {
  return new ScriptedSocket({ protocol: 'netfilter' }, answers);
}

interface Answer {
  readonly type: number;
  readonly flags?: number;
  readonly sequence: number;
  readonly errno?: number;
  readonly offset?: number;
  readonly text?: string;
}

/** A message of the kernel: an acknowledgement, a refusal, the end of a dump, or a part of it. */
function answer({ type, flags = 0, sequence, errno = 0, offset, text }: Answer): Uint8Array {
  const writer = new MessageWriter();
  const hasMore = offset !== undefined || text !== undefined;
  writer.beginMessage({ type, flags: flags | (hasMore ? NLM_F.ACK_TLVS : 0), sequence });
  writer.uint32(-errno >>> 0);
  if (type === NLMSG.ERROR) writer.raw(new Uint8Array(16));
  if (text !== undefined) writer.attributeText(NLMSGERR.MSG, text);
  if (offset !== undefined) writer.attributeUint32(NLMSGERR.OFFS, offset);
  writer.endMessage();
  return Uint8Array.from(writer.bytes());
}

const { EEXIST, ENOENT, EPERM, ENFILE, ELOOP } = constants.errno;
const five: readonly Change[] = [1, 2, 3, 4, 5].map((last) => ({
  kind: 'add',
  id: `frontends4 10.96.0.${last} . tcp . 80`,
  data: '0x1',
}));

function encode(changes: readonly Change[] = five): EncodedBatch {
  return new BatchEncoder().changes({ table: 'switchyard', changes });
}

describe('a batch', () => {
  const ok = answer({ type: NLMSG.ERROR, sequence: 2 });

  test('is taken when its last message is acknowledged', () => {
    using exchange = new Exchange(() => scripted(ok));
    expect(exchange.batch(encode())).toBeUndefined();
  });

  test('is refused as soon as one message is, even if others are acknowledged', () => {
    const refused = answer({ type: NLMSG.ERROR, sequence: 2, errno: EEXIST });
    const second = answer({ type: NLMSG.ERROR, sequence: 3, errno: ENOENT });
    using exchange = new Exchange(() => scripted(ok, refused, second, ok));
    expect(exchange.batch(encode())).toMatchObject({ errno: EEXIST, sequence: 2 });
  });

  test('without an answer is neither: the socket is given up', () => {
    const sockets = [scripted(answer({ type: NLMSG.ERROR, sequence: 1 })), scripted(ok)];
    let next = 0;
    using exchange = new Exchange(() => sockets[next++]!);
    expect(() => exchange.batch(encode())).toThrow('unknown whether the kernel took');
    expect(sockets[0]!.isClosed).toBe(true);
    expect(exchange.batch(encode())).toBeUndefined();
  });

  test('whose answer was lost goes on with a new socket, and old answers never count', () => {
    const sockets = [scripted('ENOBUFS', ok), scripted(ok)];
    let next = 0;
    using exchange = new Exchange(() => sockets[next++]!);
    expect(() => exchange.batch(encode())).toThrow('ENOBUFS');
    expect(exchange.batch(encode())).toBeUndefined();
    expect(sockets.map(({ sent }) => sent.length)).toEqual([1, 1]);
  });

  test('of nothing is not sent', () => {
    const socket = scripted();
    using exchange = new Exchange(() => socket);
    expect(exchange.batch(encode([]))).toBeUndefined();
    expect(socket.sent).toEqual([]);
  });

  test('is not sent after disposal', () => {
    const exchange = new Exchange(() => scripted(ok));
    exchange[Symbol.dispose]();
    expect(() => exchange.batch(encode())).toThrow('the transport was disposed');
  });
});

describe('a dump', () => {
  const part = (sequence: number, flags = 0): Uint8Array => answer({ type: NFT_MSG.NEWSETELEM, sequence, flags });
  const done = (sequence: number, flags = 0): Uint8Array => answer({ type: NLMSG.DONE, sequence, flags });

  async function read(answers: readonly Scripted[]): Promise<string> {
    using exchange = new Exchange(() => scripted(...answers));
    let sequence = 0;
    const seen: number[] = [];
    const makeRequest = (): NetlinkRequest => ({ bytes: new Uint8Array(16), sequence: ++sequence });
    const result = await exchange.dump(
      {
        makeRequest,
        visit: (_, message) => seen.push(message.sequence),
        restart: () => {
          seen.length = 0;
        },
      },
      signal,
    );
    return `${result}: ${seen.join(' ')}`;
  }

  test.each<[string, readonly Uint8Array[], string]>([
    ['is all that comes before its end', [part(1), part(1), done(1)], '0: 1 1'],
    ['does not see what belongs to others', [part(9), part(1), done(9), done(1)], '0: 1'],
    ['that was interrupted is read again', [part(1), part(1, NLM_F.DUMP_INTR), done(1), part(2), done(2)], '0: 2'],
    ['that was disturbed at its end is read again', [part(1), done(1, NLM_F.DUMP_INTR), part(2), done(2)], '0: 2'],
    ['of what is not there is an errno', [answer({ type: NLMSG.ERROR, sequence: 1, errno: ENOENT })], `${ENOENT}: `],
    [
      'that ends with an errno is no success',
      [part(1), answer({ type: NLMSG.DONE, sequence: 1, errno: EPERM })],
      `${EPERM}: 1`,
    ],
  ])('%s', async (_, answers, expected) => {
    expect(await read(answers)).toBe(expected);
  });

  test('that is always disturbed ends after ten attempts', async () => {
    const answers = Array.from({ length: 20 }, (_, index) => done(index + 1, NLM_F.DUMP_INTR));
    await expect(read(answers)).rejects.toThrow('it changed during each of 10 attempts');
  });

  test('that breaks off is an error', async () => {
    await expect(read([part(1)])).rejects.toThrow('did not answer');
    await expect(read([part(1), 'ENOBUFS'])).rejects.toThrow('ENOBUFS');
  });
});

describe('a refusal names', () => {
  const batch = encode();
  const [message] = batch.messages;
  const offsetOf = (index: number): number => {
    const lengthOfElement = 40;
    const headerAndNames = 16 + 4 + 16 + 16 + 4;
    return headerAndNames + index * lengthOfElement;
  };
  const explain = (errno: number, offset?: number, text?: string): ReturnType<typeof explainRefusal> =>
    explainRefusal(
      { errno, sequence: message!.sequence, offset, text },
      { attempt: 'cannot write', table: 'switchyard', batch, changes: five },
    );

  test.each([0, 1, 2, 3, 4])('change %d of five', (index) => {
    const error = explain(EEXIST, offsetOf(index));
    expect(error.change).toBe(five[index]);
    expect(error.refusal).toBe('exists');
    expect(error.message).toBe(
      `cannot write: the kernel answered EEXIST when it was to add 10.96.0.${index + 1} . tcp . 80 : 0x1 to frontends4: ` +
        'it conflicts with an existing one; nothing of it took effect',
    );
  });

  test.each([
    ['the table', ENOENT, 20, undefined, 'ENOENT about table inet switchyard: there is no such table', 'missing'],
    [
      'the map',
      ENOENT,
      36,
      undefined,
      'ENOENT about frontends4 of table inet switchyard: it does not exist',
      'missing',
    ],
    [
      'the map, without an offset',
      ENFILE,
      undefined,
      undefined,
      'ENFILE about frontends4 of table inet switchyard: it is full',
      'other',
    ],
    ['the permission', EPERM, undefined, undefined, 'run as root or with CAP_NET_ADMIN', 'permission'],
    [
      'the kernel’s own words',
      ELOOP,
      undefined,
      'loop detected',
      'ELOOP about frontends4 of table inet switchyard: this is unexpected; kernel message: loop detected',
      'other',
    ],
  ] as const)('%s', (_, errno, offset, text, words, refusal) => {
    const error = explain(errno, offset, text);
    expect(error.message).toContain(words);
    expect([error.refusal, error.change]).toEqual([refusal, undefined]);
  });
});
