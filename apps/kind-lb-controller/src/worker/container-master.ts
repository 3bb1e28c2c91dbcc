import { HostError } from '@switchyard/core';
import { askSocket } from '../haproxy/ask-socket.ts';
import type { HaproxyMaster } from '../haproxy/haproxy-master.ts';

/**
 * A HAProxy master that somebody else started: the first process of our container. It belongs to another user, so it
 * is told by its socket what a signal would say. What it complains of is in the container's log.
 */
export function containerMaster(socket: string, pid = 1): HaproxyMaster {
  return {
    pid,
    socket,
    hasEnded: false, // with it, the container and we would have ended
    complaint: "the container's log says why",
    clearComplaint: () => undefined,
    async requestReload(signal) {
      try {
        await askSocket(socket, 'reload', signal);
      } catch (error) {
        // It executes itself anew and may drop the connection without an answer; whether it reloaded, its state tells.
        if (!(error instanceof HostError)) throw error;
      }
    },
  };
}
