import { rename, writeFile } from 'node:fs/promises';
import { millis, seconds, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot } from '../../../../../tools/debian/debian-root.ts';
import { readLog } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
const day = 86_400;
let lab: FaultLab;
/** The file that says how far the wall clock of node1's agent is ahead of the machine's, in seconds. */
let offsetFile: string;

beforeAll(async () => {
  lab = await startFaultLab('fclock');
  offsetFile = `${lab.cluster.lab.folder}/clock`;
  const root = await debianRoot({
    packages: ['libfaketime'],
    exclude: ['libc6'],
    progress: () => undefined,
    signal,
  });
  const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  await setClock(0);
  await lab.agents[0].stop();
  await lab.replaceAgent(0, {
    args: ['-v=4', '--metrics-bind-address=0.0.0.0:10249'],
    env: {
      LD_PRELOAD: `${root}/usr/lib/${architecture}-linux-gnu/faketime/libfaketimeMT.so.1`,
      FAKETIME_TIMESTAMP_FILE: offsetFile,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1', // as in the kernel: setting the time changes CLOCK_REALTIME alone
    },
  });
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** In one step: a half-written file would be another time. */
async function setClock(offset: number): Promise<void> {
  await writeFile(`${offsetFile}.new`, `${offset < 0 ? '' : '+'}${offset}\n`);
  await rename(`${offsetFile}.new`, offsetFile);
}

async function get(
  path: string,
  port = 10_256,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const address = lab.nodes[0].addresses.IPv4 ?? '';
  const answer = await lab.prober.probe({ protocol: 'http', address, port, path });
  return answer.status === 'answered'
    ? { status: answer.httpStatus, body: answer.body }
    : { status: undefined, body: '' };
}

test.each([
  ['a day ahead', day],
  ['a day behind', -day],
  ['right again', 0],
])('a wall clock that is set %s costs no request, delays nothing and starts no storm', async (_, offset) => {
  const agent = lab.agents[0];
  const before = await readLog(agent);
  await lab.underLoad(async () => {
    await lab.setEndpoints('a', 'c');
    await setClock(offset);
    for (const pod of ['d', 'b'] as const) {
      await lab.setEndpoints(pod);
      expect(await lab.awaitAnswerOf(pod)).toBeLessThan(1000);
    }
    await systemClock.sleep(seconds(2), signal);
    expect((await get('/livez')).status).toBe(200);
    const { status, body } = await get('/healthz');
    expect(status).toBe(200);
    const { currentTime } = JSON.parse(body) as { readonly currentTime: string };
    expect(Math.abs(Date.parse(currentTime) - Date.now() - offset * 1000)).toBeLessThan(5000);
  });
  const log = (await readLog(agent)).slice(before.length);
  expect(log.filter(({ level }) => !['info', 'debug'].includes(level))).toEqual([]);
  expect(log.filter(({ msg }) => msg === 'listed in full')).toEqual([]);
  const applied = log.filter(({ msg }) => msg === 'applied');
  expect(applied.length).toBeGreaterThanOrEqual(2);
  expect(applied.length).toBeLessThanOrEqual(3);
  for (const line of applied) {
    expect(line['durationMs']).toBeGreaterThanOrEqual(0);
    expect(line['durationMs']).toBeLessThan(1000);
  }
  expect(Math.abs((log.at(-1)?.time ?? 0) - Date.now() - offset * 1000)).toBeLessThan(20_000);
});

test('latencies that were measured meanwhile are no days', async () => {
  await lab.setEndpoints('d');
  await lab.awaitAnswerOf('d');
  const { body } = await get('/metrics', 10_249);
  const value = (name: string): number =>
    Number(
      new RegExp(`^kubeproxy_network_programming_duration_seconds_${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(body)?.[1],
    );
  expect(value('count')).toBeGreaterThan(0);
  expect(value('sum')).toBeGreaterThan(0);
  expect(value('sum')).toBeLessThan(value('count') * 5);
});

test('the age of the rules, read by the next agent, knows nothing of the wall clock', async () => {
  await setClock(day);
  await systemClock.sleep(millis(500), signal);
  const killedAt = performance.now();
  process.kill(lab.agents[0].pid, 'SIGKILL');
  await lab.agents[0].ended;
  await systemClock.sleep(seconds(1), signal);
  await lab.replaceAgent(0);
  const away = (performance.now() - killedAt) / 1000;
  const lines = (await readLog(lab.agents[0])).filter(({ msg }) => msg === 'rules were not reconciled for some time');
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    expect(line['forSeconds']).toBeGreaterThanOrEqual(1);
    expect(line['forSeconds']).toBeLessThan(away + 21); // the mark is made every twenty seconds
  }
});
