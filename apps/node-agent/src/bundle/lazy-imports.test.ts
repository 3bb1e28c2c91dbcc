import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../', import.meta.url));
/** Modules of some 100 kB each: the API client alone took 20 to 30 ms of CPU of every start, `--version` included. */
const heavy = /^import (?!type )[^;]*? from '@switchyard\/(?:core\/kubernetes|native|backend-\w+)';/m;

test('no module of the agent imports the API client, a backend or the addon before it needs them', () => {
  const files = globSync('**/*.ts', { cwd: folder }).filter((file) => !/\.test\.ts$|(^|\/)testing\//.test(file));
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => heavy.test(readFileSync(`${folder}${file}`, 'utf8')))).toEqual([]);
});
