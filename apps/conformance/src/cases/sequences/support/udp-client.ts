import { InvariantError } from '@switchyard/core';
import type { AskingSocket, FlowConnector, Seen } from '../../../model/test-environment.ts';
import type { Call } from './object-factory.ts';
import type { SequenceContext } from './sequence-context.ts';

/** A client with one UDP socket, which it replaces by one with the same port if the kernel destroyed it, as resolvers do. */
export interface UdpClient extends Pick<FlowConnector, 'attempts'> {
  close(): Promise<void>;
}

/** Kind of a client's socket: connected, or naming the Service with each datagram. */
export type UdpSocketKind = 'connected' | 'unconnected';

/** Opens the socket of a client by a call that names a source port. */
export async function openUdpClient(context: SequenceContext, call: Call, kind: UdpSocketKind): Promise<UdpClient> {
  const connector = await context.connectorFor(call);
  const open = async (): Promise<AskingSocket> => {
    const opened = connector[kind]?.();
    if (opened !== undefined) return opened;
    throw new InvariantError('the environment says that it can hold sockets, and has no way to');
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
