import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('V8 knows what it is asked: it names an unknown flag on standard error, and goes on', async () => {
  const url = JSON.stringify(new URL('release-memory.ts', import.meta.url).href);
  const program = `(await import(${url})).preferLittleMemory()`;
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect(stderr).toBe('');
});
