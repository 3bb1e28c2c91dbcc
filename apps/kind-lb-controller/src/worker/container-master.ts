import { HostError } from '@switchyard/core';
import { askSocket } from '../haproxy/ask-socket.ts';
import type { HaproxyMaster } from '../haproxy/haproxy-master.ts';

/**
 * The HAProxy master that is the first process of a container. It belongs to another user, so its socket is used instead of
 * signals. Its messages are in the container's log.
 */
export function containerMaster(socket: string, pid = 1): HaproxyMaster {
  return {
    pid,
    socket,
    hasEnded: false, // with it, the container and we would have ended
    errorOutput: "the container's log says why",
    clearErrorOutput: () => undefined,
    async requestReload(signal) {
      try {
        await askSocket(socket, 'reload', signal);
      } catch (error) {
        // It executes itself anew and may drop the connection without an answer; whether it reloaded is read from its state.
        if (!(error instanceof HostError)) throw error;
      }
    },
  };
}
