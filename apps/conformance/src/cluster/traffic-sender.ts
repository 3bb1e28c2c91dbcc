import type { ProbeConnection } from '@switchyard/lab';
import type { RequestSender } from '@switchyard/rollout';
import { startRemoteLoad } from './remote-load.ts';
import type { CallSender } from './traffic-caller.ts';

/** Who takes traffic calls, such as a pod, as a sender of requests. */
export function trafficSender(call: CallSender, signal: AbortSignal): RequestSender {
  return {
    startLoad: (options) => startRemoteLoad(call, options, signal),
    openProber: async (inner) => ({
      probe: async (request) => {
        const { results } = await call('probe', { probes: [request] }, inner);
        return results[0] ?? { status: 'timeout', took: 0 };
      },
      open: async (request) => {
        const { result, connection } = await call('open', request, inner);
        const held = connection === undefined ? undefined : heldConnection(call, connection, inner);
        return { result, connection: held };
      },
      // The connections end with the sender.
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
  };
}

const exchangeTimeout = 1500;

/** A connection that a sender keeps open. */
export function heldConnection(call: CallSender, connection: number, signal: AbortSignal): ProbeConnection {
  return {
    exchange: (text, timeout = exchangeTimeout) => call('exchange', { connection, text, timeout }, signal),
    close: async () => {
      await call('close', { connection }, signal);
    },
  };
}
