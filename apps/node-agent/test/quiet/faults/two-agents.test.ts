import { hostname } from 'node:os';
import { seconds } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('ftwo');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

test('a second agent on a node ends with one line that names the first, which goes on', async () => {
  const [first] = lab.agents;
  await lab.underLoad(async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      // As a DaemonSet beside a DaemonSet would: with health ports of its own.
      const second = lab.cluster.startAgent(lab.nodes[0], { args: ['--healthz-bind-address=0.0.0.0:20256'] });
      expect(await second.ended).toBe(1);
      const log = await readLog(second);
      expect(log.filter(({ msg }) => msg === 'applied')).toEqual([]);
      const lines = log.filter(({ level }) => level === 'text');
      expect(lines).toHaveLength(1);
      expect(lines[0]?.msg).toContain(`another agent runs on this node: pid ${first.pid} on ${hostname()}`);
      expect(lines[0]?.msg).toMatch(/for Node node1, since 20\d\d-/);
    }
    await lab.setEndpoints('d');
    expect(await lab.awaitAnswerOf('d')).toBeLessThan(1000);
  });
  const trouble = (await readLog(first)).filter(({ msg }) => msg.includes('drift') || msg.includes('failed'));
  expect(trouble).toEqual([]);
});

test('when the first is killed, another one starts at once', async () => {
  await lab.underLoad(async () => {
    process.kill(lab.agents[0].pid, 'SIGKILL');
    await lab.agents[0].ended;
    const start = performance.now();
    await lab.replaceAgent(0);
    expect(performance.now() - start).toBeLessThan(seconds(10)); // there is nothing that it would have to wait for
    await lab.setEndpoints('b');
    expect(await lab.awaitAnswerOf('b')).toBeLessThan(1000);
  });
});
