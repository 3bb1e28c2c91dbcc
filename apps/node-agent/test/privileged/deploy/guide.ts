import { readFile } from 'node:fs/promises';

const guide = new URL('../../../../../docs/operate/migrate.md', import.meta.url);
const kind = new URL('../../../../../docs/operate/kind.md', import.meta.url);
const readme = new URL('../../../../../deploy/README.md', import.meta.url);

/** The whole migration guide. */
export function guideText(): Promise<string> {
  return readFile(guide, 'utf8');
}

/** The command blocks of the migration guide that carry a tag, as written, in their order. */
export function guideCommands(tag: string): Promise<readonly string[]> {
  return commandsOf(guide, tag);
}

/** The same of deploy/README.md. */
export function readmeCommands(tag: string): Promise<readonly string[]> {
  return commandsOf(readme, tag);
}

/** The same of docs/operate/kind.md. */
export function kindCommands(tag: string): Promise<readonly string[]> {
  return commandsOf(kind, tag);
}

async function commandsOf(file: URL, tag: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8');
  const blocks = [...text.matchAll(/^```sh (\S+)\n([^]*?)^```$/gm)].filter(([, found]) => found === tag);
  if (blocks.length === 0) throw new Error(`${file.pathname} has no block \`\`\`sh ${tag}`);
  return blocks.map(([, , commands = '']) => commands);
}
