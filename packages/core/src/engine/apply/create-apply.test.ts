import { expect, test } from 'vitest';
import { HostError, InvariantError } from '../../base/errors.ts';
import type { ApplyOutcome, ApplyRequest } from '../dataplane-backend.ts';
import { MemoryLogger } from '../../testing/memory-logger.ts';
import { situation } from '../../testing/situations.ts';
import { KernelDiffersError } from './driver.ts';
import { type AppliedState, createApply } from './apply-engine.ts';

const table = situation({});
const delta: ApplyRequest = {
  table,
  scope: { kind: 'delta', delta: { upserted: [], removed: [], settingsChanged: false } },
};
const full: ApplyRequest = { table, scope: { kind: 'full' } };
const differs = new KernelDiffersError('a chain is gone');

/** A state whose applies end one after the other as `ends` says; then they succeed. */
class ScriptedState implements AppliedState {
  readonly calls: string[] = [];
  isKnown: boolean;
  readonly #ends: Error[];

  constructor(isKnown: boolean, ...ends: Error[]) {
    this.isKnown = isKnown;
    this.#ends = ends;
  }

  forget(): void {
    this.isKnown = false;
    this.calls.push('forget');
  }

  apply({ scope }: ApplyRequest): Promise<ApplyOutcome> {
    return this.#end(scope.kind);
  }

  async #end(call: string): Promise<ApplyOutcome> {
    await Promise.resolve();
    this.calls.push(call);
    const end = this.#ends.shift();
    if (end !== undefined) throw end;
    return { status: 'applied', writes: 0 };
  }
}

function apply(
  state: AppliedState,
  request: ApplyRequest,
  signal = new AbortController().signal,
): Promise<ApplyOutcome> {
  return createApply(state, { logger: new MemoryLogger(), ipFamily: 'IPv4' })(request, signal);
}

test.each<[string, boolean, ApplyRequest, readonly string[]]>([
  ['a delta where the state is known', true, delta, ['delta']],
  ['a delta where it is not: all is read', false, delta, ['full']],
  ['a full apply', true, full, ['full']],
])('%s', async (_, isKnown, request, calls) => {
  const state = new ScriptedState(isKnown);
  expect(await apply(state, request)).toEqual({ status: 'applied', writes: 0 });
  expect(state.calls).toEqual(calls);
});

test('a kernel that differs from the record is read back and written', async () => {
  const state = new ScriptedState(true, differs);
  expect(await apply(state, delta)).toMatchObject({ status: 'applied' });
  expect(state.calls).toEqual(['delta', 'forget', 'full']);
});

test('a kernel that differs again and again fails the apply after three readings', async () => {
  const state = new ScriptedState(true, differs, differs, differs);
  expect(await apply(state, delta)).toEqual({ status: 'failed', error: differs });
  expect(state.calls).toEqual(['delta', 'forget', 'full', 'forget', 'full', 'forget']);
});

test('a refusal of the host is an outcome, and the state is forgotten', async () => {
  const error = new HostError('test.refused', 'no such table');
  const state = new ScriptedState(true, error);
  expect(await apply(state, delta)).toEqual({ status: 'failed', error });
  expect(state.isKnown).toBe(false);
});

test('an aborted apply rejects with the reason of the signal; what is no refusal is thrown', async () => {
  const reason = new Error('shutting down');
  const aborted = AbortSignal.abort(reason);
  await expect(apply(new ScriptedState(true, new HostError('test', 'x')), delta, aborted)).rejects.toBe(reason);
  const broken = new InvariantError('broken promise');
  await expect(apply(new ScriptedState(true, broken), delta)).rejects.toBe(broken);
});
