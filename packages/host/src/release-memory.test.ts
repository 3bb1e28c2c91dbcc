import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test.each(['preferQuickStart', 'preferLittleMemory'])(
  'V8 knows the flags of %s: it would name an unknown one and go on',
  async (name) => {
    const url = JSON.stringify(new URL('run-app.ts', import.meta.url).href);
    const program = `(await import(${url})).${name}()`;
    const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    expect(stderr).toBe('');
  },
);
