import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { ScriptedRunner } from './scripted-runner.ts';

const options = { timeout: millis(1000), signal: new AbortController().signal };

describe('ScriptedRunner', () => {
  test('answers as told, in order', async () => {
    const runner = new ScriptedRunner([
      { file: 'nft', args: ['-v'], answer: { stdout: 'v1.1.3' } },
      { file: 'nft', args: ['-f', '-'], stdin: /add table/, answer: { exitCode: 1, stderr: 'no' } },
    ]);
    expect(await runner.run('nft', ['-v'], options)).toEqual({ exitCode: 0, stdout: 'v1.1.3', stderr: '' });
    const second = await runner.run('nft', ['-f', '-'], { ...options, stdin: 'add table ip x' });
    expect(second).toEqual({ exitCode: 1, stdout: '', stderr: 'no' });
    runner.assertDone();
  });

  test.each([
    ['another program', 'iptables', ['-v'], undefined],
    ['other arguments', 'nft', ['-V'], undefined],
    ['another stdin', 'nft', ['-v'], 'other'],
  ] as const)('refuses %s, and says so again at the end', async (...row) => {
    const [, file, args, stdin] = row;
    const runner = new ScriptedRunner([{ file: 'nft', args: ['-v'], stdin: 'wanted' }]);
    await expect(runner.run(file, args, { ...options, ...(stdin === undefined ? {} : { stdin }) })).rejects.toThrow(
      'unexpected',
    );
    expect(() => runner.assertDone()).toThrow('unexpected');
  });

  test('takes input in pieces, gives output in pieces and has process ids', async () => {
    const text = 'line\n'.repeat(30);
    const runner = new ScriptedRunner([{ file: 'cat', args: [], stdin: 'one two', answer: { stdout: text } }]);
    const seen = { pieces: [] as string[], pid: 0 };
    const result = await runner.run('cat', [], {
      ...options,
      stdin: ['one ', 'two'],
      onStdout: (piece) => seen.pieces.push(piece),
      onStart: (pid) => (seen.pid = pid),
    });
    expect({ result, pid: seen.pid, text: seen.pieces.join('') }).toEqual({
      result: { exitCode: 0, stdout: '', stderr: '' },
      pid: 1,
      text,
    });
    expect(seen.pieces.length).toBeGreaterThan(1);
    runner.assertDone();
  });

  test('a command after the end of the script is refused', async () => {
    await expect(new ScriptedRunner([]).run('true', [], options)).rejects.toThrow('after the end');
  });

  test('leftovers fail', () => {
    expect(() => new ScriptedRunner([{ file: 'nft', args: [] }]).assertDone()).toThrow('never came: nft');
  });

  test('an error is thrown as if the program could not start', async () => {
    const error = new Error('gone');
    const runner = new ScriptedRunner([{ file: 'nft', args: [], answer: error }]);
    await expect(runner.run('nft', [], options)).rejects.toBe(error);
    runner.assertDone();
  });
});
