import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rulesPage } from './rules-page.ts';

const page = fileURLToPath(new URL('../../../../docs/generated/nftables-rules.md', import.meta.url));

/** Whether the page of rules is what the code makes. False if it is missing. */
export async function isFresh(): Promise<boolean> {
  return (await readFile(page, 'utf8').catch(() => '')) === rulesPage();
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !(await isFresh())) {
  await writeFile(page, rulesPage());
  process.stdout.write(`written: ${page}\n`);
}
