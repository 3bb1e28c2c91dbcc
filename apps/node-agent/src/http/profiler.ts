import { gzipSync } from 'node:zlib';
import { HostError, messageOf, type Millis, systemClock } from '@switchyard/core';
import { Session } from 'node:inspector/promises';
import { encodePprof } from './pprof.ts';
import { fromCpuProfile, fromHeapProfile } from './v8-profiles.ts';

/** `pprof`: compressed protobuf for `go tool pprof`. `v8`: JSON as V8 writes it, for Chrome DevTools. */
export type ProfileFormat = 'pprof' | 'v8';

/** Duration and format of a profile. */
export interface ProfileRequest {
  readonly duration: Millis;
  readonly format: ProfileFormat;
}

/** Profiles of this process. Nothing is collected, and no memory used, outside of a call. */
export interface Profiler {
  /** CPU profile. Ends early when aborted. */
  cpu(request: ProfileRequest, signal: AbortSignal): Promise<string | Uint8Array>;
  /** Allocations that are still in use at the end: names and sizes of the allocating functions, no contents. */
  heap(request: ProfileRequest, signal: AbortSignal): Promise<string | Uint8Array>;
}

/** Bytes between two samples of the heap, on average. */
const interval = 16 * 1024;

/** This process's own, by the inspector inside it; nothing listens. Import it lazily. */
export const inspectorProfiler: Profiler = {
  cpu: ({ duration, format }, signal) =>
    withSession(async (session) => {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      const time = systemClock.now();
      await pause(duration, signal);
      const { profile } = await session.post('Profiler.stop');
      return format === 'v8' ? JSON.stringify(profile) : gzipSync(encodePprof(fromCpuProfile(profile, time)));
    }),
  heap: ({ duration, format }, signal) =>
    withSession(async (session) => {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling', { samplingInterval: interval });
      const time = systemClock.now();
      await pause(duration, signal);
      const { profile } = await session.post('HeapProfiler.stopSampling');
      if (format === 'v8') return JSON.stringify(profile);
      return gzipSync(encodePprof(fromHeapProfile(profile, { interval, time, duration: systemClock.now() - time })));
    }),
};

async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const session = new Session();
  try {
    session.connect();
    return await use(session);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new HostError('host.profile', `cannot profile this process: ${reason}`, { cause });
  } finally {
    session.disconnect();
  }
}

/** An abort ends the pause, not the profile: it must be stopped in order. */
async function pause(duration: Millis, signal: AbortSignal): Promise<void> {
  await systemClock.sleep(duration, signal).catch(() => undefined);
}
