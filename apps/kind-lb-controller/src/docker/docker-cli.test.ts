import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { FakeEngine } from '../testing/fake-engine.ts';
import { DockerCli } from './docker-cli.ts';

const { signal } = new AbortController();

describe('a command', () => {
  test('that succeeds gives its output', async () => {
    using engine = new FakeEngine([{ when: 'ps --all', stdout: 'one\ntwo' }]);
    const cli = new DockerCli({ program: engine.program });
    expect(await cli.run('cannot list', ['ps', '--all'], {}, signal)).toBe('one\ntwo');
  });

  test('that fails is an error with the command, the exit code, the last line and advice', async () => {
    using engine = new FakeEngine([{ when: 'ps', stderr: 'warning\nno space left on device\n', exitCode: 125 }]);
    const cli = new DockerCli({ program: engine.program });
    await expect(cli.run('cannot list containers', ['ps'], {}, signal)).rejects.toMatchObject({
      code: 'docker.noSpace',
      message:
        "cannot list containers: docker ps: it exited with 125 and said: no space left on device; make room on the engine's disk (docker system df, docker system prune)",
    });
  });

  test('of a missing program says so', async () => {
    const cli = new DockerCli({ program: '/nonexistent/podman' });
    expect(cli.kind).toBe('podman');
    expect(await cli.try(['ps'], {}, signal)).toMatchObject({ status: 'failed', failure: { kind: 'programMissing' } });
  });

  test('that takes too long is stopped', async () => {
    using engine = new FakeEngine([{ when: 'ps', lasts: 60 }]);
    const cli = new DockerCli({ program: engine.program });
    const result = await cli.try(['ps'], { timeout: millis(50) }, signal);
    expect(result).toMatchObject({ status: 'failed', failure: { kind: 'timedOut', command: 'docker ps' } });
  });

  test('is ended by abort', async () => {
    using engine = new FakeEngine([{ when: 'ps', lasts: 60 }]);
    const cli = new DockerCli({ program: engine.program });
    const controller = new AbortController();
    const running = cli.try(['ps'], {}, controller.signal);
    controller.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
  });

  test('gets what is for its standard input', async () => {
    using engine = new FakeEngine([{ when: 'exec *' }]);
    await new DockerCli({ program: engine.program }).try(['exec', 'x'], { stdin: '{"a":1}' }, signal);
    expect(engine.stdin).toBe('{"a":1}');
  });
});

test('only so many commands run at once, and one that waits can be aborted', async () => {
  using engine = new FakeEngine([{ when: 'slow', lasts: 0.3 }, { when: 'quick' }]);
  const cli = new DockerCli({ program: engine.program, parallelism: 2 });
  const controller = new AbortController();
  const all = ['slow', 'slow', 'quick'].map((one) => cli.try([one], {}, signal));
  const waiting = cli.try(['never'], {}, controller.signal);
  controller.abort(new Error('no longer wanted'));
  await expect(waiting).rejects.toThrow('no longer wanted');
  await Promise.race(all);
  expect(engine.calls.slice(0, 2)).toEqual(['slow', 'slow']);
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  expect(engine.calls).toEqual(['slow', 'slow', 'quick']);
});

describe('a stream', () => {
  test('delivers lines as they arrive, and returns how it ended', async () => {
    using engine = new FakeEngine([{ when: 'events', stdout: 'one\ntwo\n', stderr: 'unexpected EOF', exitCode: 1 }]);
    const lines: string[] = [];
    const end = await new DockerCli({ program: engine.program }).follow(['events'], (line) => lines.push(line), signal);
    expect(lines).toEqual(['one', 'two']);
    expect(end).toMatchObject({ kind: 'other', exitCode: 1, stderr: 'unexpected EOF' });
  });

  test('goes on however much comes on stderr, of which the end is kept', async () => {
    using engine = new FakeEngine([{ when: 'logs', stderr: `${'noise\n'.repeat(40_000)}the end\n`, exitCode: 1 }]);
    const end = await new DockerCli({ program: engine.program }).follow(['logs'], () => undefined, signal);
    expect(end).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/noise\nthe end$/) });
    expect(end.stderr.length).toBeLessThan(10_000);
  });

  test('is ended by abort', async () => {
    using engine = new FakeEngine([{ when: 'events', stdout: 'one\n', lasts: 60 }]);
    const controller = new AbortController();
    const enough = (): void => controller.abort(new Error('enough'));
    const following = new DockerCli({ program: engine.program }).follow(['events'], enough, controller.signal);
    await expect(following).rejects.toThrow('enough');
  });

  test('of a program that is not there ends at once', async () => {
    const end = await new DockerCli({ program: '/nonexistent/docker' }).follow(['events'], () => undefined, signal);
    expect(end).toMatchObject({ kind: 'programMissing' });
  });
});
