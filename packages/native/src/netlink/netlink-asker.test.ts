import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import { expect, test } from 'vitest';
import { NativeError } from '../native-error.ts';
import type { NetlinkSocket } from '../netlink-socket.ts';
import { NLM_F, NLMSG } from './constants.ts';
import { MessageWriter } from './message-writer.ts';
import { NetlinkAsker } from './netlink-asker.ts';
import { readUint32 } from './read-messages.ts';

const listType = 20;

interface Answer {
  readonly type: number;
  readonly value: number;
  readonly flags?: number;
  /** Default: that of the question. */
  readonly sequence?: number;
}

const item = (value: number): Answer => ({ type: listType, value });
const done: Answer = { type: NLMSG.DONE, value: 0 };
const changed: Answer = { ...done, flags: NLM_F.DUMP_INTR };
const refused: Answer = { type: NLMSG.ERROR, value: -constants.errno.ENOENT };
const stale: Answer = { ...item(9), sequence: 77 };

/** Answers each question by the next list, the last list again and again; in one datagram each. */
function asker(...lists: readonly (readonly Answer[])[]): NetlinkAsker {
  const datagrams: Uint8Array[] = [];
  let asked = 0;
  const socket: Pick<NetlinkSocket, 'send' | 'receive'> = {
    send: (question) => {
      const ofQuestion = readUint32(question, 8);
      for (const { type, value, flags = 0, sequence = ofQuestion } of lists[Math.min(asked++, lists.length - 1)] ??
        []) {
        const writer = new MessageWriter();
        writer.beginMessage({ type, flags, sequence });
        writer.uint32(value >>> 0);
        writer.endMessage();
        datagrams.push(writer.bytes().slice());
      }
    },
    receive: (buffer) => {
      const datagram = datagrams.shift();
      if (datagram !== undefined) buffer.set(datagram);
      return datagram?.length;
    },
  };
  return new NetlinkAsker(socket as NetlinkSocket, { attempt: 'cannot list numbers', code: 'numbers' }); // it needs no more
}

const read = (bytes: Uint8Array, { start }: { readonly start: number }): number => readUint32(bytes, start);
const list = (...lists: readonly (readonly Answer[])[]): readonly number[] =>
  asker(...lists).dump(listType, () => undefined, read);
const get = (answers: readonly Answer[], isAbsent?: (errno: number) => boolean): number | undefined =>
  asker(answers).get(listType, () => undefined, isAbsent === undefined ? { read } : { read, isAbsent });

test.each<[sentence: string, lists: readonly (readonly Answer[])[], found: readonly number[]]>([
  ['is taken as it is', [[item(1), item(2), done]], [1, 2]],
  [
    'that changed while it was read is read again',
    [
      [item(1), changed],
      [item(3), done],
    ],
    [3],
  ],
  ['does not have what answers another question', [[stale, item(1), done]], [1]],
])('a list %s', (_, lists, found) => {
  expect(list(...lists)).toEqual(found);
});

test.each<[sentence: string, answers: readonly Answer[], kind: new (...args: never) => HostError, text: RegExp]>([
  ['that always changes', [changed], HostError, /^cannot list numbers: something changed during each of 10 attempts/],
  ['that ends in the middle', [item(1)], HostError, /^cannot list numbers: the kernel ended an answer in the middle/],
  ['that is refused', [refused], NativeError, /^cannot list numbers.*ENOENT/],
])('a list %s is an error', (_, answers, kind, text) => {
  expect(() => list(answers)).toThrow(kind);
  expect(() => list(answers)).toThrow(text);
});

test('one answer is enough, and what is absent is no error where that is expected', () => {
  expect(get([item(5), item(6)])).toBe(5);
  expect(get([refused], (errno) => errno === constants.errno.ENOENT)).toBeUndefined();
  expect(() => get([refused])).toThrow(NativeError);
});
