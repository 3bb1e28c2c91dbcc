import { ManualClock, settle } from '@switchyard/core/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addressChanges } from './addresses.ts';
import { type Scripted, ScriptedSocket } from '../testing/scripted-socket.ts';

const message = new Uint8Array(16);

function bench(...script: readonly Scripted[]) {
  const clock = new ManualClock();
  const sockets: ScriptedSocket[] = [];
  const stop = new AbortController();
  const state = { changes: 0 };
  const open = (options: ScriptedSocket['options']): ScriptedSocket => {
    const socket = new ScriptedSocket(options, script);
    sockets.push(socket);
    return socket;
  };
  const ended = (async () => {
    const changes = addressChanges({ clock, open, netns: '/run/netns/x' }, stop.signal);
    while ((await changes.next()).done !== true) state.changes++;
  })();
  ended.catch(() => undefined);
  onTestFinished(() => stop.abort(new Error('stop')));
  return { clock, sockets, stop, state, ended };
}

describe('addressChanges', () => {
  test('listens to links and to addresses of both families', () => {
    const { sockets } = bench();
    expect(sockets[0]?.options).toEqual({ protocol: 'route', groups: [1, 5, 9], netns: '/run/netns/x' });
  });

  test.each<[string, readonly Scripted[], number]>([
    ['nothing came', [], 0],
    ['a message came', [message], 1],
    ['many messages came', [message, message, message], 1],
    ['messages were lost', ['ENOBUFS'], 1],
    ['a message did not fit', ['EMSGSIZE'], 1],
  ])('%s between two looks', async (_, script, changes) => {
    const { clock, state } = bench('nothing', ...script);
    await settle();
    expect(state.changes).toBe(0);
    await clock.advance(250);
    await clock.advance(250);
    expect(state.changes).toBe(changes);
  });

  test('looks four times a second', async () => {
    const { clock, state } = bench('nothing', message, 'nothing', message);
    await settle();
    await clock.advance(249);
    expect(state.changes).toBe(0);
    await clock.advance(1);
    expect(state.changes).toBe(1);
    await clock.advance(250);
    expect(state.changes).toBe(2);
  });

  test('ends, without an error and with its socket closed, when aborted', async () => {
    const { stop, ended, sockets, clock } = bench();
    await settle();
    stop.abort(new Error('stop'));
    await expect(ended).resolves.toBeUndefined();
    expect(sockets[0]?.isClosed).toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  test('any other failure of the socket is thrown', async () => {
    const { ended, sockets } = bench('EPERM');
    await expect(ended).rejects.toThrow('recvfrom failed with EPERM');
    expect(sockets[0]?.isClosed).toBe(true);
  });
});
