import { seconds, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('fcut');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** Packets from and to the API server vanish: no error is sent, no connection ends. */
async function cut(): Promise<void> {
  const { apiServer } = lab.cluster.lab;
  const chain = (hook: string): string => `chain ${hook} { type filter hook ${hook} priority 0; policy drop; }`;
  const stdin = `table inet cut {\n${chain('input')}\n${chain('output')}\n}`;
  expect(await apiServer.run('nft', ['-f', '-'], { stdin })).toMatchObject({ exitCode: 0 });
}

test('a network that swallows all packets of the API server for 60 s costs no request; what changed meanwhile arrives', async () => {
  const { apiServer } = lab.cluster.lab;
  await lab.underLoad(async () => {
    await cut();
    await lab.setEndpoints('d');
    await systemClock.sleep(seconds(60), signal);
    for (const agent of lab.agents) {
      const lost = (await readLog(agent)).filter(({ msg }) => msg.startsWith('lost the API server'));
      expect(lost.length, 'keep-alive finds out').toBeGreaterThan(0);
    }
    await apiServer.run('nft', ['delete', 'table', 'inet', 'cut']);
    expect(await lab.awaitAnswerOf('d')).toBeLessThan(35_000); // the kernel's own wait between two SYN, and a little
  });
});
