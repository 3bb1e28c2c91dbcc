import type { Drift } from '@switchyard/core/engine';
import { millis } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { MessageWriter } from '@switchyard/native';
import { type Scripted, ScriptedSocket } from '@switchyard/native/testing';
import { DriftReport, DriftTally } from './foreign-transactions.ts';
import type { NoticeReader } from './notices.ts';
import { OwnChanges } from './own-changes.ts';
import { watchTables } from './watch-tables.ts';

/** A datagram with one generation. */
function generation(id: number): Uint8Array {
  const writer = new MessageWriter();
  writer.beginMessage({ type: 0x0a0f, flags: 0, sequence: 0 });
  writer.attributeUint32be(1, id);
  writer.endMessage();
  return writer.bytes().slice();
}

/** Reports each message. */
class Noted implements NoticeReader {
  readonly #report = new DriftReport();

  note(bytes: Uint8Array): void {
    const tally = new DriftTally();
    tally.add('rule', `number ${bytes.at(-1)}`);
    this.#report.add(tally, { id: 1, pid: 7, name: 'nft' });
  }

  noteLoss(what?: string): void {
    this.#report.addLoss(what);
  }

  take(): Drift | undefined {
    return this.#report.take();
  }
}

/** The answer to a request for the generation. */
function answer(id: number): Uint8Array {
  const writer = new MessageWriter();
  writer.beginMessage({ type: 0x0a0f, flags: 0, sequence: 1 });
  writer.netfilterHeader(0, 0);
  writer.attributeUint32be(1, id);
  writer.endMessage();
  return writer.bytes().slice();
}

/** Watches sockets that play these scripts, for half a second; `between` runs after 150 ms. */
async function watch(
  scripts: readonly (readonly Scripted[])[],
  between: (own: OwnChanges, sockets: readonly ScriptedSocket[]) => void = () => undefined,
  isDamaged: () => boolean = () => true,
) {
  const clock = new ManualClock();
  const own = new OwnChanges();
  const sockets: ScriptedSocket[] = [];
  const controller = new AbortController();
  const reports: Drift[] = [];
  const watching = watchTables(
    {
      clock,
      own,
      notes: new Noted(),
      isDamaged,
      open: (options) => {
        const socket = new ScriptedSocket(options, scripts[sockets.length] ?? []);
        sockets.push(socket);
        return socket;
      },
    },
    (drift) => reports.push(drift),
    controller.signal,
  );
  watching.catch(() => undefined); // it may fail before it is waited for
  await clock.advance(millis(150));
  between(own, sockets);
  await clock.advance(millis(350));
  controller.abort();
  await watching;
  return { reports, sockets };
}

test('what there is at one look is one report', async () => {
  const { reports } = await watch([[generation(1), generation(2), 'nothing', generation(3)]]);
  expect(reports.map(({ changes }) => changes)).toEqual([['number 1', 'number 2'], ['number 3']]);
});

test('lost notices are reported, and so are later ones', async () => {
  const { reports } = await watch([['ENOBUFS', generation(1)]]);
  expect(reports).toMatchObject([
    { kind: 'unknown', changes: ['too many changes at once: notices were lost', 'number 1'] },
  ]);
});

test('a later own socket is filtered by a second socket, and no notice is missed in between', async () => {
  const { reports, sockets } = await watch([[], [generation(2)]], (own, [before]) => {
    own.register(4711);
    before?.add(generation(1));
  });
  expect(sockets.map(({ options }) => options.ignorePortIds)).toEqual([[], [4711]]);
  expect(reports.map(({ changes }) => changes)).toEqual([['number 1', 'number 2']]);
  expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true, true]);
});

test.each<[string, { after: number; own: number; isDamaged?: boolean }, readonly string[]]>([
  ['no process wrote', { after: 7, own: 0 }, ['number 1']],
  ['only this process wrote', { after: 9, own: 2 }, ['number 1']],
  ['others wrote, too', { after: 9, own: 1 }, ['unknown changes during a load', 'number 1', 'number 3']],
  ['others wrote elsewhere', { after: 8, own: 0, isDamaged: false }, ['number 1', 'number 3']],
])(
  'an unwatched write closes the socket, and it shows afterwards that %s',
  async (_, { after, own: commits, isDamaged = true }, expected) => {
    const later = expected.includes('number 3') ? [generation(3)] : [];
    const { reports, sockets } = await watch(
      [[], [answer(7)], later, [answer(after)]],
      (own, [before]) => {
        before?.add(generation(1));
        using _unwatched = own.unwatched();
        expect(before?.isClosed).toBe(true);
        for (let commit = 0; commit < commits; commit++) own.noteCommit();
      },
      () => isDamaged,
    );
    expect(reports.flatMap(({ changes }) => changes)).toEqual(expected);
    expect(sockets.map(({ options }) => options.groups)).toEqual([[7], undefined, [7], undefined]);
  },
);

test('without notices there is no reading, and with many at most one in 100 ms', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  let readings = 0;
  const socket = new ScriptedSocket({ protocol: 'netfilter' }, []);
  const { receive } = socket;
  socket.receive = (buffer) => {
    readings++;
    return receive.call(socket, buffer);
  };
  const watching = watchTables({ clock, notes: new Noted(), open: () => socket }, () => undefined, stop.signal);
  await clock.advance(millis(10_000));
  expect(readings).toBe(1); // the first one, at once
  for (let round = 0; round < 20; round++) {
    socket.add(generation(round));
    await clock.advance(millis(10));
  }
  expect(readings).toBe(1 + 20 + 2); // each notice once, and the end of two readings
  stop.abort();
  await watching;
});

test('any other error of the socket ends it', async () => {
  await expect(watch([['EPERM']])).rejects.toThrow('cannot receive over netlink');
});
