import { expect, test } from 'vitest';
import { type FakeAnswer, FakeEngine } from '../testing/fake-engine.ts';
import { DockerCli } from './docker-cli.ts';
import { runWorker } from './run-worker.ts';

const { signal } = new AbortController();

const rows: readonly (readonly [string, Partial<FakeAnswer>, object])[] = [
  ['its answer', { stdout: 'noise\n{"status":"applied"}\n' }, { status: 'applied' }],
  [
    'its refusal, with any exit code',
    { stdout: '{"status":"failed","reason":"HAProxyRejected","message":"no"}\n', exitCode: 1 },
    { status: 'failed', reason: 'HAProxyRejected', message: 'no' },
  ],
  ['that it says nothing', { stdout: '' }, { status: 'failed', reason: 'WorkerFailed' }],
  [
    'that it crashes, with its last words',
    { stderr: 'TypeError: x\n', exitCode: 1 },
    { status: 'failed', reason: 'WorkerFailed', message: expect.stringContaining('TypeError: x') },
  ],
  [
    'that the image has none',
    { stderr: 'OCI runtime exec failed: exec: "x": executable file not found in $PATH: unknown', exitCode: 126 },
    { status: 'failed', reason: 'ImageUnusable' },
  ],
  ['that the container does not run', { stderr: 'Error: Container 1 is not running', exitCode: 1 }, { status: 'gone' }],
  ['that the container dies meanwhile', { exitCode: 137 }, { status: 'gone' }],
];

test.each(rows)('a worker answers %s', async (_, answer, expected) => {
  using engine = new FakeEngine([{ when: 'exec --interactive --user=0 lb switchyard-lb-worker', ...answer }]);
  const cli = new DockerCli({ program: engine.program });
  expect(await runWorker(cli, 'lb', { command: 'followHealth' }, signal)).toMatchObject(expected);
  expect(JSON.parse(engine.stdin)).toEqual({ command: 'followHealth' });
});
