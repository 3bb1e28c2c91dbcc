import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { commandFailed, CommandError, isPermissionDenied, isProgramMissing, stderrTail } from './command-error.ts';
import { createCommandRunner } from './command-runner.ts';

const runner = createCommandRunner();
const options = { timeout: millis(5000), signal: new AbortController().signal };

describe('createCommandRunner', () => {
  test.each([
    ['the output of both streams is kept apart, newlines included', 'echo out; echo err >&2', 0, 'out\n', 'err\n'],
    ['a non-zero exit is a result', 'echo no >&2; exit 3', 3, '', 'no\n'],
    ['a death by signal is 128 + its number', 'kill -KILL $$', 137, '', ''],
    ['messages come in the C locale', 'printf %s "$LC_ALL"', 0, 'C', ''],
  ] as const)('%s', async (...row) => {
    const [, script, exitCode, stdout, stderr] = row;
    expect(await runner.run('sh', ['-c', script], options)).toEqual({ exitCode, stdout, stderr });
  });

  test('stdin reaches the program whole', async () => {
    const stdin = `${'x'.repeat(1_000_000)}\n`;
    expect((await runner.run('cat', [], { ...options, stdin })).stdout).toBe(stdin);
  });

  test('without stdin the program reads an empty input and does not wait', async () => {
    expect((await runner.run('cat', [], options)).stdout).toBe('');
  });

  test('extra variables are added to the environment', async () => {
    const result = await runner.run('sh', ['-c', 'printf %s "$ONE"'], { ...options, env: { ONE: '1' } });
    expect(result.stdout).toBe('1');
  });

  test('a program that is not installed has its own failure', async () => {
    const error = await runner.run('switchyard-no-such-program', [], options).catch((reason: unknown) => reason);
    expect(isProgramMissing(error)).toBe(true);
    expect((error as Error).message).toContain('switchyard-no-such-program');
  });

  test('a program that is ended by a signal is there, and an error names both', async () => {
    const result = await runner.run('sh', ['-c', 'kill -SEGV $$'], options);
    const error = commandFailed('cannot try', { file: 'sh', args: [] }, result);
    expect(isProgramMissing(error)).toBe(false);
    expect(error.message).toBe('cannot try: sh was ended by SIGSEGV (exit status 139) and said nothing on stderr');
  });

  test('a path that is no program is an error that names it', async () => {
    const error = await runner.run('/etc', [], options).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'CommandError', code: 'command.notStarted' });
    expect(isProgramMissing(error)).toBe(false);
  });

  test('a program that takes too long is killed and reported', async () => {
    const error = await runner
      .run('sleep', ['30'], { ...options, timeout: millis(30) })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ failure: 'timedOut', message: 'sleep did not end within 30 ms and was killed' });
  });

  test('a program that ignores SIGTERM is killed, and its children are not waited for', async () => {
    const script = 'trap "" TERM; sleep 3; sleep 3';
    const error = await runner
      .run('sh', ['-c', script], { ...options, timeout: millis(50) })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ failure: 'timedOut' });
  });

  test('a program that does not read its input is no error', async () => {
    expect(await runner.run('true', [], { ...options, stdin: 'x'.repeat(1_000_000) })).toMatchObject({ exitCode: 0 });
  });

  test('input in pieces reaches the program in order, at the speed at which it reads', async () => {
    let asked = 0;
    function* pieces(): Generator<string> {
      for (let index = 0; index < 200; index++) {
        asked = index;
        yield `${String(index).padStart(5, '0')} ${'x'.repeat(20_000)}\n`;
      }
    }
    let askedAtStart = -1;
    const first = {
      ...options,
      stdin: pieces(),
      onStdout: () => (askedAtStart = askedAtStart < 0 ? asked : askedAtStart),
    };
    const { exitCode, stdout } = await runner.run('sh', ['-c', 'sleep 0.2; echo; cat >/dev/null'], first);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    expect(askedAtStart).toBeLessThan(20);
    expect(asked).toBe(199);
    const all = await runner.run('cut', ['-c1-5'], { ...options, stdin: pieces() });
    expect(all.stdout).toBe(Array.from({ length: 200 }, (_, index) => `${String(index).padStart(5, '0')}\n`).join(''));
  });

  test('a program that ends before it read all pieces is no error, and the rest is not taken', async () => {
    let asked = 0;
    function* endless(): Generator<string> {
      for (;;) {
        asked += 1;
        yield 'x'.repeat(100_000);
      }
    }
    expect(await runner.run('true', [], { ...options, stdin: endless() })).toMatchObject({ exitCode: 0 });
    expect(asked).toBeLessThan(20);
  });

  test('output is handed on as it comes, whole characters only', async () => {
    const pieces: string[] = [];
    const script = "printf 'one \\303'; sleep 0.1; printf '\\244 two'";
    const result = await runner.run('sh', ['-c', script], { ...options, onStdout: (piece) => pieces.push(piece) });
    expect(result).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    expect(pieces).toEqual(['one ', 'ä two']);
  });

  test('the process id is that of the program', async () => {
    let pid = 0;
    const result = await runner.run('sh', ['-c', 'echo $$'], { ...options, onStart: (id) => (pid = id) });
    expect(result.stdout).toBe(`${pid}\n`);
  });

  const broken = new Error('ours');
  const throws = (): never => {
    throw broken;
  };
  test.each([
    ['what takes the output', { onStdout: throws }],
    ['what gives the input', { stdin: { [Symbol.iterator]: throws } }],
    ['the start callback', { onStart: throws }],
  ])('a throw of %s kills the program and is the rejection', async (_, extra) => {
    const begin = performance.now();
    await expect(runner.run('sh', ['-c', 'echo; exec sleep 4'], { ...options, ...extra })).rejects.toBe(broken);
    expect(performance.now() - begin).toBeLessThan(3000);
  });

  test('aborting kills the program and rejects with the reason', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    const running = runner.run('sleep', ['30'], { ...options, signal: controller.signal });
    setTimeout(() => controller.abort(reason), 20);
    await expect(running).rejects.toBe(reason);
  });

  test('an aborted signal starts nothing', async () => {
    const reason = new Error('stop');
    await expect(runner.run('true', [], { ...options, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe('CommandError', () => {
  test('a failed command says what was tried, what came back and the stderr tail', () => {
    const error = commandFailed(
      'cannot list the ruleset',
      { file: 'nft', args: [] },
      { exitCode: 1, stdout: '', stderr: 'Error: no\n' },
    );
    expect(error).toBeInstanceOf(CommandError);
    expect(error.message).toBe('cannot list the ruleset: nft exited with 1 and said: Error: no');
    expect(error).toMatchObject({ exitCode: 1, stderrTail: 'Error: no', code: 'command.failed' });
  });

  test('a long stderr is cut at a line start', () => {
    const tail = stderrTail(Array.from({ length: 1000 }, (_, index) => `line ${index}`).join('\n'));
    expect(tail.length).toBeLessThanOrEqual(2000);
    expect(tail).toMatch(/^line \d+\n/);
    expect(tail).toMatch(/line 999$/);
  });

  test.each([
    ['EPERM is a refusal', 1, 'Error: Could not process rule: Operation not permitted', true],
    ['EACCES is a refusal', 1, 'open: Permission denied', true],
    ['success is none, for any stderr', 0, 'Operation not permitted', false],
    ['another failure is none', 1, 'Error: syntax error', false],
  ] as const)('%s', (...row) => {
    const [, exitCode, stderr, expected] = row;
    expect(isPermissionDenied({ exitCode, stdout: '', stderr })).toBe(expected);
  });
});
