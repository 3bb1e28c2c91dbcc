/** Owns a lab, reports the pids of two programs in it, and waits to be killed. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { ipFamilies, millis, systemClock } from '@switchyard/core';
import { createLab } from '../../src/index.ts';

const signal = AbortSignal.timeout(60_000);
const lab = await createLab({ name: process.argv[2] ?? '', nodes: 1, ipFamilies }, signal);
const [node] = lab.nodes;
if (node === undefined) throw new Error('no node');
const pod = await lab.addPod(node, 'pod1');
node.spawn('sleep', ['600']);
pod.spawn('setsid', ['--fork', 'sleep', '600']); // leaves its process group and parent, as a daemon would
let pids: readonly string[] = [];
const isSleeper = (pid: string): boolean => pid !== '' && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n';
do {
  await systemClock.sleep(millis(50), signal);
  pids = [node, pod].flatMap(({ namespace }) =>
    execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' }).split('\n').filter(isSleeper),
  );
} while (pids.length !== 2);
process.send?.(pids.map(Number));
setInterval(() => undefined, 60_000);
