import type { ProbeConnection } from '@switchyard/lab';
import type { RequestSender } from '@switchyard/rollout';
import { startRemoteLoad } from './remote-load.ts';
import { type CalledPod, type Caller, callPod } from './traffic-caller.ts';

/** A pod as a sender of requests. */
export function podSender(caller: Caller, pod: CalledPod, signal: AbortSignal): RequestSender {
  return {
    startLoad: ({ url, ...options }) => startRemoteLoad({ caller, pod, url }, options, signal),
    openProber: async (inner) => ({
      probe: async (request) => {
        const { results } = await callPod(caller, pod, { name: 'probe', argument: { probes: [request] } }, inner);
        return results[0] ?? { status: 'timeout', took: 0 };
      },
      open: async (request) => {
        const { result, connection } = await callPod(caller, pod, { name: 'open', argument: request }, inner);
        const held = connection === undefined ? undefined : heldConnection(caller, pod, connection, inner);
        return { result, connection: held };
      },
      // The connections end with the pod.
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
  };
}

const exchangeTimeout = 1500;

/** A connection that a pod keeps open. */
export function heldConnection(
  caller: Caller,
  pod: CalledPod,
  connection: number,
  signal: AbortSignal,
): ProbeConnection {
  return {
    exchange: (text, timeout = exchangeTimeout) =>
      callPod(caller, pod, { name: 'exchange', argument: { connection, text, timeout } }, signal),
    close: async () => {
      await callPod(caller, pod, { name: 'close', argument: { connection } }, signal);
    },
  };
}
