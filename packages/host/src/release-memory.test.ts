import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('V8 knows the flag: it would name an unknown flag on standard error, and go on', async () => {
  const url = JSON.stringify(new URL('run-app.ts', import.meta.url).href);
  const program = `(await import(${url})).preferLittleMemory()`;
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect(stderr).toBe('');
});
