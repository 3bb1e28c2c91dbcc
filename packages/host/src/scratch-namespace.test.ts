import { seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { CommandError, runInScratchNamespace } from './command-error.ts';
import type { CommandResult } from './command-runner.ts';
import { ScriptedRunner } from './testing/index.ts';

const { signal } = new AbortController();
const failed = (why: 'notFound' | 'timedOut' | 'notStarted'): Error =>
  new CommandError(why, `cannot run it: ${why}`, { file: 'unshare', args: [] });

async function run(answer: Partial<CommandResult> | Error) {
  const runner = new ScriptedRunner([{ file: 'unshare', args: ['--net', 'nft', '-f', '-'], stdin: 'rules', answer }]);
  const result = await runInScratchNamespace(runner, ['nft', '-f', '-'], {
    stdin: 'rules',
    timeout: seconds(1),
    signal,
  });
  runner.assertDone();
  return result;
}

describe('a program in a namespace that ends with it', () => {
  test('says there what it says elsewhere', async () => {
    expect(await run({ exitCode: 1, stderr: 'Error: no such thing' })).toMatchObject({ exitCode: 1 });
  });

  test.each<[string, Partial<CommandResult> | Error]>([
    ['unshare is missing', failed('notFound')],
    ['namespaces are forbidden', { exitCode: 1, stderr: 'unshare: unshare failed: Operation not permitted' }],
    ['the kernel is busy taking others down', failed('timedOut')],
  ])('is not run when %s', async (_, answer) => {
    expect(await run(answer)).toBeUndefined();
  });

  test('fails when unshare does not start for another reason', async () => {
    await expect(run(failed('notStarted'))).rejects.toThrow('notStarted');
  });
});
