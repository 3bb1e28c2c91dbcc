import { closeSync, constants, openSync, readSync } from 'node:fs';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { millis, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LogLine, parseLog, until } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const program = fileURLToPath(new URL('../../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('flog');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** Replaces node1's agent by one that a shell script starts; `$agent` is its program, "$@" its flags. */
async function replaceAgentBy(script: string): Promise<void> {
  const path = `${lab.cluster.lab.folder}/start-agent`;
  await writeFile(path, `#!/bin/sh\nagent=${program}\n${script}\n`);
  await chmod(path, 0o755);
  await lab.agents[0].stop();
  await lab.replaceAgent(0, { program: path, args: ['-v=4'] });
}

/** Writes endpoints `rounds` times, so far apart that each is applied alone, and ends with pod `last`. */
async function change(rounds: number, last: 'b' | 'd'): Promise<number> {
  for (let round = 0; round < rounds; round++) {
    await lab.setEndpoints(round % 2 === 0 ? 'a' : 'b', 'c');
    await systemClock.sleep(millis(12), signal);
  }
  await lab.setEndpoints(last);
  return lab.awaitAnswerOf(last);
}

async function healthStatus(): Promise<number | undefined> {
  const address = lab.nodes[0].addresses.IPv4 ?? '';
  const answer = await lab.prober.probe({ protocol: 'http', address, port: 10_256, path: '/healthz' });
  return answer.status === 'answered' ? answer.httpStatus : undefined;
}

function generations(lines: readonly LogLine[]): readonly number[] {
  const applied = lines.filter((line) => line.msg === 'applied' && line['ipFamily'] === 'IPv4');
  return applied.map((line) => Number(line['generation']));
}

/** Fails unless the applies of the log follow each other without a gap: no line is missing, torn or out of order. */
function expectUnbroken(lines: readonly LogLine[]): void {
  expect(lines.filter(({ level }) => level === 'text')).toEqual([]);
  const seen = generations(lines);
  expect(seen).toEqual(Array.from(seen, (_, index) => (seen[0] ?? 0) + index));
}

test('a full disk: the agent goes on, temporary files are not needed, and the log is whole once there is space', async () => {
  const disk = `${lab.cluster.lab.folder}/disk`;
  await replaceAgentBy(
    `mkdir -p ${disk}\n` +
      `exec unshare --mount -- sh -c 'mount -t tmpfs -o size=128k tmpfs "$0" && cd "$0" && export TMPDIR="$0" && exec "$@" 2>>"$0/log"' ${disk} "$agent" "$@"`,
  );
  const inside = `/proc/${lab.agents[0].pid}/root${disk}`;
  const log = async (): Promise<readonly LogLine[]> => parseLog(wholeLines(await readFile(`${inside}/log`, 'utf8')));
  await expect(writeFile(`${inside}/filler`, Buffer.alloc(200_000))).rejects.toMatchObject({ code: 'ENOSPC' });
  await lab.underLoad(async () => {
    expect(await change(100, 'd')).toBeLessThan(1000);
    expect(await healthStatus()).toBe(200);
    const applied = generations(await log()).length;
    await rm(`${inside}/filler`);
    await until(async () => generations(await log()).length > applied);
    expect(await change(0, 'b')).toBeLessThan(1000);
  });
  expectUnbroken(await log());
});

test('a reader of the log that does not read, goes away and comes back costs no request and no time', async () => {
  const pipe = `${lab.cluster.lab.folder}/pipe`;
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  await lab.nodes[0].run('mkfifo', [pipe]);
  let reader = openSync(pipe, flags);
  await replaceAgentBy(`exec "$agent" "$@" 2>${pipe}`);
  await lab.underLoad(async () => {
    expect(await change(300, 'd')).toBeLessThan(1000);
    expect(await healthStatus()).toBe(200);
    const first = readSync(reader, Buffer.alloc(100_000));
    expect(first, 'a full pipe').toBeGreaterThan(60_000);
    closeSync(reader);
    expect(await change(10, 'b')).toBeLessThan(1000);
    expect(await healthStatus()).toBe(200);
  });
  reader = openSync(pipe, flags);
  const back = Date.now();
  await change(1, 'd');
  let text = '';
  await until(async () => {
    text += readAll(reader);
    return parseLog(wholeLines(text)).some(({ msg, time }) => msg === 'applied' && time >= back);
  });
  closeSync(reader);
  // The first line is what is left of one that went down with the pipe.
  expectUnbroken(parseLog(wholeLines(text).replace(/^.*\n/, '')));
});

/** Contents of a pipe now; empty without data or without a writer. */
function readAll(pipe: number): string {
  const buffer = Buffer.alloc(100_000);
  try {
    return buffer.toString('utf8', 0, readSync(pipe, buffer));
  } catch {
    return '';
  }
}

/** Up to the last end of a line: the rest is being written, or waits for space. */
function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1);
}

test('an agent without stderr runs', async () => {
  await replaceAgentBy('exec "$agent" "$@" 2>&-');
  await lab.underLoad(async () => {
    expect(await change(10, 'd')).toBeLessThan(1000);
  });
});
