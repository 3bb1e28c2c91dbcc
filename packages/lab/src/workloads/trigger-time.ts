import type { Millis } from '@switchyard/core';
import type { Pod, Service } from '@switchyard/core/kubernetes';
import { readyTransition } from './pod-facts.ts';
import { apiTime, parseApiTime } from './time-scale.ts';

/**
 * Records the reported Ready transitions of a Service's pods. A slice's annotation has the oldest transition that it newly
 * reports. It has none if the change has no newer transition (a `deletionTimestamp`, a deleted pod, a second change within
 * one second).
 */
export interface TriggerTimes {
  /** Returns the time to write, RFC 3339 in whole seconds, or undefined. Each call marks the pods' transitions as reported. */
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
