import { readFile } from 'node:fs/promises';

const file = new URL('../../../../../docs/migrate-from-kube-proxy.md', import.meta.url);

/** The whole guide. */
export function guideText(): Promise<string> {
  return readFile(file, 'utf8');
}

/** The command blocks of the migration guide that carry a tag, as written, in their order. */
export async function guideCommands(tag: string): Promise<readonly string[]> {
  const text = await guideText();
  const blocks = [...text.matchAll(/^```sh (\S+)\n([^]*?)^```$/gm)].filter(([, found]) => found === tag);
  if (blocks.length === 0) throw new Error(`docs/migrate-from-kube-proxy.md has no block \`\`\`sh ${tag}`);
  return blocks.map(([, , commands = '']) => commands);
}
