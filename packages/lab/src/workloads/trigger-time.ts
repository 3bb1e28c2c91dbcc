import type { Millis } from '@switchyard/core';
import type { Pod, Service } from '@switchyard/core/kubernetes';
import { readyTransition } from './pod-facts.ts';
import { apiTime, parseApiTime } from './time-scale.ts';

/**
 * Remembers which Ready transitions of a Service's pods have already been reported, so that a slice is annotated with
 * the oldest change it reports and with none when its change has no newer transition behind it (a
 * `deletionTimestamp`, a pod that left, a second change within one second).
 */
export interface TriggerTimes {
  /** The time to write, RFC 3339 in whole seconds, or undefined. Each call reports the pods' transitions for good. */
  next(key: string, service: Service, pods: readonly Pod[]): string | undefined;
  forget(key: string): void;
}

/** An empty memory: the first change of each Service is annotated with the Service's creation. */
export function createTriggerTimes(): TriggerTimes {
  const reportedByService = new Map<string, ReadonlyMap<string, Millis>>();
  return {
    next: (key, service, pods) => {
      const before = reportedByService.get(key);
      const now = new Map<string, Millis>();
      let oldest: Millis | undefined;
      for (const pod of pods) {
        const at = readyTransition(pod);
        if (at === undefined) continue;
        const name = pod.metadata.name ?? '';
        now.set(name, at);
        if (at > (before?.get(name) ?? -Infinity) && (oldest === undefined || at < oldest)) oldest = at;
      }
      reportedByService.set(key, now);
      const time = before === undefined ? parseApiTime(service.metadata.creationTimestamp) : oldest;
      return time === undefined ? undefined : apiTime(time);
    },
    forget: (key) => {
      reportedByService.delete(key);
    },
  };
}
