import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { LogFormat } from './logger.ts';

const module = new URL('logger.ts', import.meta.url).href;

/** Returns the stderr lines of a process that logs in this format. */
function logged(format: LogFormat): readonly string[] {
  const script = `import { createLogger } from ${JSON.stringify(module)};
    const logger = createLogger({ format: '${format}', level: 'info' });
    logger.info('one', { a: 1 }); logger.debug('hidden');
    logger.setLevel('debug'); logger.debug('two'); process.exit(0);`;
  const args = ['--conditions=@switchyard/source', '--input-type=module', '-e', script];
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' });
  expect(stdout).toBe('');
  return stderr.trimEnd().split('\n');
}

test('text goes to standard error, and its level can be changed', () => {
  expect(logged('text')).toEqual([
    expect.stringMatching(/^I\d{4} \S+ +\d+ switchyard\] "one" a=1$/),
    expect.stringMatching(/^I\d{4} \S+ +\d+ switchyard\] "two"$/),
  ]);
});

test('JSON goes to standard error, and its level can be changed', () => {
  expect(logged('json').map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'info', msg: 'one', a: 1 },
    { level: 'debug', msg: 'two' },
  ]);
});
