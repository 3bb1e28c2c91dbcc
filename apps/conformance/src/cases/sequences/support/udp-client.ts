import { InvariantError } from '@switchyard/core';
import type { AskingSocket, Dial, Seen } from '../../../model/bed.ts';
import type { Call } from './cast.ts';
import type { Play } from './play.ts';

/** A client with one UDP socket, which it replaces, from the same port, when that is no good any more: as resolvers do. */
export interface UdpClient extends Pick<Dial, 'attempts'> {
  close(): Promise<void>;
}

/** Whether a client's socket is connected, or names the Service with each datagram. */
export type UdpSocketKind = 'connected' | 'unconnected';

/** Opens the socket of a client by a call that names a source port. */
export async function openUdpClient(play: Play, call: Call, kind: UdpSocketKind): Promise<UdpClient> {
  const dial = await play.dial(call);
  const open = async (): Promise<AskingSocket> => {
    const opened = dial[kind]?.();
    if (opened !== undefined) return opened;
    throw new InvariantError('the bed says that it can hold sockets, and has no way to');
  };
  let socket = await open();
  const ask = async (): Promise<Seen> => {
    const seen = await socket.ask();
    if (seen.kind === 'other') {
      await socket.close();
      socket = await open();
    }
    return seen;
  };
  return {
    attempts: async (count) => {
      const all: Seen[] = [];
      for (let left = count; left > 0; left--) all.push(await ask());
      return all;
    },
    close: () => socket.close(),
  };
}
