import { connect } from 'node:net';
import { systemClock } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type AgentIdentity, askAgent, claimNode } from './one-agent.ts';

const { signal } = new AbortController();
const first: AgentIdentity = {
  pid: 4711,
  hostName: 'worker-1',
  pod: 'kube-system/switchyard-x7f2p',
  nodeName: 'n1',
  version: '1.2.3',
  startedAt: '2026-11-21T10:00:00.000Z',
};
const second: AgentIdentity = { ...first, pid: 4712, pod: '' };

/** A meeting place of this test alone: the namespace is the machine's. */
const place = (): { readonly clock: typeof systemClock; readonly name: string } => ({
  clock: systemClock,
  name: `\0switchyard-test-${process.pid}-${Math.random()}`,
});

describe('one agent per node', () => {
  test('the second one is refused and told who the first one is', async () => {
    const at = place();
    await using _ = await claimNode(first, at, signal);
    await expect(claimNode(second, at, signal)).rejects.toThrow(
      'another agent runs on this node: pid 4711 in pod kube-system/switchyard-x7f2p on worker-1, version 1.2.3, ' +
        "for Node n1, since 2026-11-21T10:00:00.000Z; two agents would undo each other's rules: stop it first",
    );
  });

  test('the next one may start when the first one has gone', async () => {
    const at = place();
    await (await claimNode(first, at, signal))[Symbol.asyncDispose]();
    expect(await askAgent(at, signal)).toEqual({ status: 'none' });
    await using _ = await claimNode(second, at, signal);
    expect(await askAgent(at, signal)).toEqual({ status: 'running', identity: second });
  });

  test('of two that start at once exactly one goes on', async () => {
    const at = place();
    const results = await Promise.allSettled([claimNode(first, at, signal), claimNode(second, at, signal)]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    for (const result of results) if (result.status === 'fulfilled') await result.value[Symbol.asyncDispose]();
  });

  test('clients that never read or disconnect at once do no harm', async () => {
    const at = place();
    await using _ = await claimNode(first, at, signal);
    for (let round = 0; round < 3; round++) connect(at.name).destroy();
    const talker = connect(at.name);
    talker.on('error', () => undefined).write('x'.repeat(100_000));
    expect(await askAgent(at, signal)).toEqual({ status: 'running', identity: first });
    talker.destroy();
  });
});
