import { HostError, type Millis, systemClock } from '@switchyard/core';
import { Session } from 'node:inspector/promises';

/** Profiles of this process, each as V8 writes it. Nothing is collected, and no memory used, outside of a call. */
export interface Profiler {
  /** Where time goes, as a `.cpuprofile`. Ends early when aborted. */
  cpu(duration: Millis, signal: AbortSignal): Promise<string>;
  /** Who allocates what is still in use at the end, as a `.heapprofile`: names and sizes, no contents. */
  heap(duration: Millis, signal: AbortSignal): Promise<string>;
}

/** This process's own, by the inspector inside it; nothing listens. Import it lazily. */
export const inspectorProfiler: Profiler = {
  cpu: (duration, signal) =>
    withSession(async (session) => {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      await pause(duration, signal);
      const { profile } = await session.post('Profiler.stop');
      return JSON.stringify(profile);
    }),
  heap: (duration, signal) =>
    withSession(async (session) => {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling', { samplingInterval: 16 * 1024 });
      await pause(duration, signal);
      const { profile } = await session.post('HeapProfiler.stopSampling');
      return JSON.stringify(profile);
    }),
};

async function withSession(use: (session: Session) => Promise<string>): Promise<string> {
  const session = new Session();
  try {
    session.connect();
    return await use(session);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HostError('host.profile', `cannot profile this process: ${reason}`, { cause });
  } finally {
    session.disconnect();
  }
}

/** An abort ends the pause, not the profile: it must be stopped in order. */
async function pause(duration: Millis, signal: AbortSignal): Promise<void> {
  await systemClock.sleep(duration, signal).catch(() => undefined);
}
