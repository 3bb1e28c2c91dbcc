import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workspace.ts';

export interface MarkdownPage {
  /** Relative to the checkout. */
  readonly path: string;
  readonly text: string;
  /** `text` with the contents of code blocks blanked, so that line numbers stay. */
  readonly prose: string;
}

/** A link or an image, as written. */
export interface Link {
  readonly target: string;
  /** From 1. */
  readonly line: number;
}

/** All pages, by path. Another checkout than this one is for tests. */
export function markdownPages(checkout: string = root): readonly MarkdownPage[] {
  return globSync('**/*.md', { cwd: checkout, exclude: ['**/node_modules/**', '**/.nx/**', '**/dist*/**'] })
    .sort()
    .map((path) => parsePage(path, readFileSync(join(checkout, path), 'utf8')));
}

export function parsePage(path: string, text: string): MarkdownPage {
  const blank = (block: string): string => block.replaceAll(/[^\n]/g, '');
  return { path, text, prose: text.replaceAll(/^```.*?^```/gms, blank) };
}

/** Links and images outside of code. */
export function linksOf({ prose }: MarkdownPage): readonly Link[] {
  const bare = prose.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
  return [...bare.matchAll(/\]\(([^()\s]+)\)/g)].map((match) => ({
    target: match[1] ?? '',
    line: bare.slice(0, match.index).split('\n').length,
  }));
}

/** Texts in backticks, outside of code blocks. */
export function codeWords({ prose }: MarkdownPage): readonly string[] {
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
}

export interface CodeBlock {
  /** The language, perhaps with more words. */
  readonly info: string;
  readonly text: string;
  /** Line of the fence, from 1. */
  readonly line: number;
}

/** Fenced blocks, also those in lists. */
export function codeBlocksOf({ text }: MarkdownPage): readonly CodeBlock[] {
  return [...text.matchAll(/^ *```(.*)\n((?:.*\n)*?) *```$/gm)].map((match) => ({
    info: match[1]?.trim() ?? '',
    text: match[2] ?? '',
    line: text.slice(0, match.index).split('\n').length,
  }));
}

/** Text of a heading as GitHub makes an anchor of it, without the number of a repeated one. */
export function anchorOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** Names of the headings, as GitHub makes anchors of them; a repeated one gets a number. */
export function anchorsOf({ prose }: MarkdownPage): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = [...prose.matchAll(/^#{1,6} +(.*?) *$/gm)].map(([, heading = '']) => {
    const name = anchorOf(heading);
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count === 0 ? name : `${name}-${count}`;
  });
  return new Set(anchors);
}
