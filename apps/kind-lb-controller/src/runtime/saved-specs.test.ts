import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleSpec } from '../testing/example-specs.ts';
import { asSaved, readSpecs, removeSpecs, writeSpecs } from './saved-specs.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('what is read is what was written, in the form that `asSaved` gives', async () => {
  const file = join(folder, 'specs.json');
  const specs = [exampleSpec('one'), exampleSpec('two')];
  await writeSpecs(file, specs);
  expect(await readSpecs(file)).toStrictEqual(specs.map(asSaved));
  await removeSpecs(file);
  expect(await readSpecs(file)).toEqual([]);
});

test.each(['', '{', 'null', '[]', '{"version":0,"specs":[{}]}', '{"version":1,"specs":{}}'])(
  'a file that holds %j is as good as none',
  async (text) => {
    const file = join(folder, 'other.json');
    writeFileSync(file, text);
    expect(await readSpecs(file)).toEqual([]);
  },
);
