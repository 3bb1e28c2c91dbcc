import { seconds } from '@switchyard/core';
import type { WorkerAnswer, WorkerRequest } from '../worker/protocol.ts';
import { failureMessage } from './cli-failure.ts';
import type { DockerCli } from './docker-cli.ts';
import { fieldsOf, textOf } from './json-fields.ts';

/** Result of a worker. `gone`: its container does not run (any more). */
export type WorkerResult = WorkerAnswer | { readonly status: 'gone'; readonly message: string };

const workerProgram = 'switchyard-lb-worker';
const limit = seconds(60);

/** Runs the worker in a container. Rejects only with `signal.reason`. Runs in the same container must not overlap. */
export async function runWorker(
  cli: DockerCli,
  container: string,
  request: WorkerRequest,
  signal: AbortSignal,
): Promise<WorkerResult> {
  const args = ['exec', '--interactive', '--user=0', container, workerProgram];
  const result = await cli.try(args, { stdin: JSON.stringify(request), timeout: limit }, signal);
  const answer = parseAnswer(result.stdout);
  if (answer !== undefined) return answer;
  if (result.status === 'ok') {
    const message = `the worker in container ${container} ended without an answer; look at 'docker logs ${container}'`;
    return { status: 'failed', reason: 'WorkerFailed', message };
  }
  const { failure } = result;
  const message = failureMessage(`cannot run the worker in container ${container}`, failure);
  const { kind, exitCode = 0, stderr } = failure;
  if (kind === 'noSuchContainer' || kind === 'notRunning' || exitCode > 128) return { status: 'gone', message };
  const isMissing = exitCode >= 126 && /executable file not found|no such file/i.test(stderr);
  return { status: 'failed', reason: isMissing ? 'ImageUnusable' : 'WorkerFailed', message };
}

/** The answer: the last line that the worker wrote. */
function parseAnswer(stdout: string): WorkerAnswer | undefined {
  const line = stdout.trimEnd().split('\n').at(-1) ?? '';
  let answer;
  try {
    answer = fieldsOf(JSON.parse(line));
  } catch {
    return undefined;
  }
  const { status, reason, message } = answer;
  if (status === 'applied' || status === 'unchanged') return { status };
  if (status !== 'failed') return undefined;
  return { status, reason: textOf(reason) ?? 'WorkerFailed', message: textOf(message) ?? 'the worker gave no reason' };
}
