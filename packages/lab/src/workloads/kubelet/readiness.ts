import { type Clock, seconds } from '@switchyard/core';
import type { Container, Probe } from '@switchyard/core/kubernetes';
import type { TimeScale } from '../facts.ts';
import type { LabPod } from '../../lab.ts';
import { createProber, type Prober } from '../../prober.ts';

/** Counts a probe's results against its thresholds. */
export interface ReadinessTracker {
  readonly isReady: boolean;
  record(isSuccess: boolean): boolean;
}

/** Not ready before the first success. Thresholds default to 3 failures and 1 success. */
export function createReadinessTracker(probe: Probe): ReadinessTracker {
  const needed = { true: probe.successThreshold ?? 1, false: probe.failureThreshold ?? 3 };
  let isReady = false;
  let last: boolean | undefined;
  let inARow = 0;
  return {
    get isReady() {
      return isReady;
    },
    record: (isSuccess) => {
      inARow = isSuccess === last ? inARow + 1 : 1;
      last = isSuccess;
      if (isSuccess === isReady || inARow < needed[`${isSuccess}`]) return false;
      isReady = isSuccess;
      return true;
    },
  };
}

export interface ReadinessOptions {
  readonly probe: Probe;
  /** One attempt; a rejection counts as a failure. */
  readonly attempt: (signal: AbortSignal) => Promise<boolean>;
  readonly onChange: (isReady: boolean) => void;
  readonly scale: TimeScale;
  readonly clock: Clock;
}

/** Probes until aborted, then ends without an error. The first attempt comes after `initialDelaySeconds`, at once if it is 0. */
export async function followReadiness(options: ReadinessOptions, signal: AbortSignal): Promise<void> {
  const { probe, attempt, onChange, scale, clock } = options;
  const tracker = createReadinessTracker(probe);
  const pause = (seconds: number): Promise<void> => clock.sleep(scale.of(seconds), signal).catch(() => undefined);
  await pause(probe.initialDelaySeconds ?? 0);
  while (!signal.aborted) {
    const isSuccess = await attempt(signal).catch(() => false);
    if (signal.aborted) return;
    if (tracker.record(isSuccess)) onChange(tracker.isReady);
    await pause(probe.periodSeconds ?? 10);
  }
}

/** Makes a node's readiness probes, from the node's own namespace as a kubelet does. */
export interface NodeProbes extends AsyncDisposable {
  attempt(pod: LabPod, container: Container, probe: Probe, signal: AbortSignal): Promise<boolean>;
}

/** Starts nothing before the first probe over the network. Timeouts are not scaled: they are only upper bounds. */
export function createNodeProbes(): NodeProbes {
  let prober: Promise<Prober> | undefined;
  return {
    attempt: async (pod, container, probe, signal) => {
      const address = pod.addresses.IPv4 ?? pod.addresses.IPv6 ?? '';
      const timeout = seconds(probe.timeoutSeconds ?? 1);
      if (probe.exec !== undefined) {
        const [file = '', ...args] = probe.exec.command ?? [];
        return (await pod.run(file, args, { timeout })).exitCode === 0;
      }
      const { httpGet, tcpSocket } = probe;
      const protocol = httpGet === undefined ? 'connect' : 'http';
      const port = portNumber(httpGet?.port ?? tcpSocket?.port, container);
      const starting = (prober ??= createProber(pod.node, signal));
      const request = { protocol, address, port, path: httpGet?.path ?? '/', timeout } as const;
      const attempt = starting.then((ready) => ready.probe(request));
      const result = await attempt.catch((error: unknown) => {
        if (prober === starting) prober = undefined; // its process has ended: the next attempt makes another
        throw error;
      });
      if (result.status !== 'answered') return false;
      const { httpStatus = 0 } = result;
      return protocol === 'connect' || (httpStatus >= 200 && httpStatus < 400);
    },
    [Symbol.asyncDispose]: async () => {
      await prober?.then((ready) => ready[Symbol.asyncDispose]()).catch(() => undefined);
    },
  };
}

function portNumber(port: number | string | undefined, container: Container): number {
  if (typeof port === 'number') return port;
  return container.ports?.find(({ name }) => name === port)?.containerPort ?? 0;
}
