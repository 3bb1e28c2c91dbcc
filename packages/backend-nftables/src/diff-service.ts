import type { Endpoint } from '@switchyard/core';
import { type Addition, type Change, type Element, endpointData, slotId } from './elements.ts';
import { endpointSetId } from './handles.ts';
import { type PlacedService, policies, slotsOf } from './place-service.ts';
import { renderFixed, type RenderContext, renderService, renderSlots } from './render-service.ts';

/** The changes from one version of a service to the next; both stand at one id. Undefined: it is not there. */
export function diffPlaced(
  before: PlacedService | undefined,
  after: PlacedService | undefined,
  context: RenderContext,
): Change[] {
  if (before === undefined) return after === undefined ? [] : renderService(after, context);
  if (after === undefined) return diffElements(renderService(before, context), []);
  const isPlain = before.affinity === undefined && after.affinity === undefined;
  const changes = isPlain
    ? diffSlots(before, after, context)
    : diffElements(renderSlots(before, context), renderSlots(after, context));
  appendDifference(renderFixed(before, context, []), renderFixed(after, context, []), changes);
  return changes;
}

/** The changes from what is there to what is wanted. A changed value is a delete and an add of one key. */
export function diffElements(before: readonly Element[], wanted: readonly Addition[]): Change[] {
  const changes: Change[] = [];
  appendDifference(before, wanted, changes);
  return changes;
}

function appendDifference(before: readonly Element[], wanted: readonly Addition[], changes: Change[]): void {
  const had = new Map<string, string>();
  for (const { id, data } of before) had.set(id, data);
  for (const addition of wanted) {
    const data = had.get(addition.id);
    had.delete(addition.id);
    if (data === addition.data) continue;
    if (data !== undefined) changes.push({ kind: 'delete', id: addition.id });
    changes.push(addition);
  }
  for (const id of had.keys()) changes.push({ kind: 'delete', id });
}

/** Slots are compared in place: a set may have thousands, of which a change touches a few. */
function diffSlots(before: PlacedService, after: PlacedService, { suffix, exactLimit }: RenderContext): Change[] {
  const changes: Change[] = [];
  for (const policy of policies) {
    const [had, wanted] = [slotsOf(before, policy, exactLimit), slotsOf(after, policy, exactLimit)];
    const setId = endpointSetId(after.id, policy);
    for (let slot = 0; slot < had.length || slot < wanted.length; slot++) {
      const [old, now] = [had[slot], wanted[slot]];
      if (isSamePlace(old, now)) continue;
      const id = slotId(setId, slot, suffix);
      if (old !== undefined) changes.push({ kind: 'delete', id });
      if (now !== undefined) changes.push({ kind: 'add', id, data: endpointData(now) });
    }
  }
  return changes;
}

function isSamePlace(a: Endpoint | undefined, b: Endpoint | undefined): boolean {
  return a === b || (a?.address === b?.address && a?.port === b?.port);
}
