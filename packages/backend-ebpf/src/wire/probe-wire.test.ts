import { CommandError, type CommandRunner } from '@switchyard/host';
import { expect, test } from 'vitest';
import { probeWire } from './probe-wire.ts';

const { signal } = new AbortController();

const answering = (exitCode: number, stderr: string): CommandRunner => ({
  run: async () => ({ exitCode, stdout: '', stderr }),
});

test.each<readonly [sentence: string, runner: CommandRunner, reason: RegExp]>([
  [
    'no nft',
    {
      run: async (file) => {
        throw new CommandError('notFound', `no ${file}`, { file, args: [], stderrTail: '', cause: undefined });
      },
    },
    /nft is not installed/,
  ],
  ['rights are missing', answering(1, 'Error: Could not process rule: Operation not permitted'), /CAP_NET_ADMIN/],
  [
    'rules are refused',
    answering(1, 'Error: Could not process rule: No such file or directory'),
    /refuses the guard table/,
  ],
])('where %s, it says so', async (_, runner, reason) => {
  expect(await probeWire({ runner }, signal)).toEqual([expect.stringMatching(reason)]);
});
