import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

const path = (file: string): string => fileURLToPath(new URL(`../../src/report/${file}`, import.meta.url));

/** The page's script as a TypeScript module that holds it as text. */
async function generate(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path('page/main.ts')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    charset: 'ascii',
  });
  const script = (outputFiles[0]?.text ?? '').trim();
  const quoted = script.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n');
  return `// Made by test/unit/page-script.test.ts from src/report/page; \`vitest run -u\` writes it anew.

/** The script of a report's page, ready to stand in a script element. */
export const pageScript: string =
  '${quoted}';
`;
}

test('the script in the pages is what src/report/page makes; else run: vitest run test/unit/page-script.test.ts -u', async () => {
  await expect(await generate()).toMatchFileSnapshot(path('page-script.generated.ts'));
});

test('the script needs nothing from elsewhere and cannot end its element', async () => {
  const script = await generate();
  expect(script).not.toMatch(/<\/script|\bimport\b|\brequire\(|fetch\(|https?:/i);
  expect(script.length).toBeLessThan(12_000);
});
