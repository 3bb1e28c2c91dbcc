import type { Port } from '@switchyard/core';
import { takenOutAfter } from '@switchyard/loss';
import { durationText, rangeText } from '@switchyard/loss/workload';
import type { HealthProfile } from '../spec/health-profile.ts';

/**
 * Describes a profile for conditions, Events and logs; `port` is that of its health checks:
 * `HTTP GET :31234/healthz every 5 s, out after 3 failures (10 to 15 s), in after 1`.
 */
export function effectiveProfileText(profile: HealthProfile, port: Port): string {
  const { interval, downInterval, fall, rise, timeout, whenNoneUp, lastUpFor } = profile;
  const out = takenOutAfter(profile);
  const failures = fall === 1 ? '1 failure' : `${fall} failures`;
  return [
    `HTTP GET :${port}/healthz every ${durationText(interval)}`,
    ...(timeout === undefined ? [] : [`answered within ${durationText(timeout)}`]),
    `out after ${failures} (${rangeText(out.shortest, out.longest)})`,
    `in after ${rise}`,
    ...(downInterval === interval ? [] : [`nodes that are out asked every ${durationText(downInterval)}`]),
    ...(whenNoneUp === 'lastUp' ? [`while none is in, those of the last ${durationText(lastUpFor)} serve on`] : []),
    ...(whenNoneUp === 'all' ? ['while none is in, all are used'] : []),
  ].join(', ');
}
