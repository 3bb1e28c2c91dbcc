import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { casesPage } from './cases-page.ts';

const page = fileURLToPath(new URL('../../../../docs/generated/conformance-cases.md', import.meta.url));

/** Whether the page of cases says what the code says; a missing page does not. */
export async function isFresh(): Promise<boolean> {
  return (await readFile(page, 'utf8').catch(() => '')) === casesPage();
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !(await isFresh())) {
  await writeFile(page, casesPage());
  process.stdout.write(`written: ${page}\n`);
}
