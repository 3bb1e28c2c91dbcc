import type { CheckTiming } from './check-timing.ts';
import { type Step, type Steps, stepReader } from './steps.ts';

/**
 * When a load balancer holds a node UP. `phase`, 0 to below 1: how much of a pause passes between the first change of the node's
 * health and the next check. A check at the moment of a change sees the new state.
 */
export function checkedNode(isHealthy: Steps<boolean>, timing: CheckTiming, phase: number): Steps<boolean> {
  const { initial, changes: healthChanges } = isHealthy;
  const changes: Step<boolean>[] = [];
  const first = healthChanges[0];
  if (first === undefined) return { initial, changes };
  const read = stepReader(isHealthy);
  let isUp = initial;
  let against = 0;
  let at = first.at + phase * (isUp ? timing.interval : timing.downInterval);
  for (;;) {
    against = read(at) === isUp ? 0 : against + 1;
    if (against >= (isUp ? timing.fall : timing.rise)) {
      isUp = !isUp;
      against = 0;
      changes.push({ at, value: isUp });
    }
    const pause = isUp || against > 0 ? timing.interval : timing.downInterval;
    // While no check contradicts the state, checks before the next change have no effect.
    const next = against > 0 ? at + pause : firstCheckAfterChange(healthChanges, at, pause);
    if (next === undefined && read(at) === isUp) return { initial, changes };
    at = next ?? at + pause;
  }
}

/** The first check at or after the next change of health; undefined if there is none. */
function firstCheckAfterChange(changes: readonly Step<boolean>[], at: number, pause: number): number | undefined {
  const change = changes.find((one) => one.at > at);
  return change === undefined ? undefined : at + Math.max(1, Math.ceil((change.at - at) / pause)) * pause;
}

/** Delays each DOWN by `grace`: whether a node is UP, or was UP until a moment ago. */
export function heldFor({ initial, changes }: Steps<boolean>, grace: number): Steps<boolean> {
  const held: Step<boolean>[] = [];
  changes.forEach((change, index) => {
    if (change.value) {
      held.push(change);
      return;
    }
    const back = changes[index + 1];
    if (back === undefined || back.at > change.at + grace) held.push({ at: change.at + grace, value: false });
  });
  return { initial, changes: held };
}
