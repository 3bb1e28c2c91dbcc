import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root } from '../workspace.ts';
import { anchorsOf, codeWords, linksOf, markdownPages, type MarkdownPage, parsePage } from './markdown.ts';

/** Relative links and anchors that lead nowhere, as `file:line: target: why`. */
export function linkFaults(pages: readonly MarkdownPage[] = markdownPages()): readonly string[] {
  return pages.flatMap((page) =>
    linksOf(page).flatMap(({ target, line }) => {
      const fault = linkFault(page, target);
      return fault === undefined ? [] : [`${page.path}:${line}: ${target}: ${fault}`];
    }),
  );
}

function linkFault(page: MarkdownPage, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [file = '', anchor] = target.split('#');
  const path = file === '' ? page.path : normalize(join(dirname(page.path), file));
  if (path.startsWith('..')) return 'leads out of the checkout';
  if (file !== '' && !existsSync(join(root, path))) return 'there is no such file';
  if (anchor === undefined) return undefined;
  if (!path.endsWith('.md')) return 'only pages have anchors';
  const other = file === '' ? page : parsePage(path, readFileSync(join(root, path), 'utf8'));
  return anchorsOf(other).has(anchor) ? undefined : 'the page has no such heading';
}

const folders = /^(apps|packages|tools|deploy|images|docs|e2e|examples)\/[\w./{},-]*[\w}/]$/;
const sources = /^\w[\w./{},-]*\.(ts|cc)$/;

/**
 * Paths in backticks of which nothing is there. Those from the root of the checkout must be there as they are; other sources,
 * such as `netlink/watch.ts`, must be the end of some file's path, with or without its `src/`. Patterns with a star are not looked at.
 */
export function pathFaults(pages: readonly MarkdownPage[] = markdownPages()): readonly string[] {
  const files = globSync('{apps,packages,tools,e2e,examples}/**/*.{ts,cc}', {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist*/**', '**/build/**'],
  }).flatMap((file) => [file, file.replace('/src/', '/')]);
  const isThere = (path: string): boolean =>
    folders.test(path) ? isMade(path) || existsSync(join(root, path)) : files.some((file) => file.endsWith(`/${path}`));
  return pages.flatMap((page) =>
    codeWords(page)
      .filter((word) => folders.test(word) || sources.test(word))
      .flatMap(expandBraces)
      .filter((path) => !isThere(path))
      .map((path) => `${page.path}: ${path}: there is no such file`),
  );
}

/** Whether a build makes the path, which a fresh checkout therefore lacks. */
function isMade(path: string): boolean {
  return /\/(dist|dist-bundle|build|\.results|\.test-results)(\/|$)/.test(path);
}

function expandBraces(path: string): readonly string[] {
  const [whole, choices] = /\{([^{}]*)\}/.exec(path) ?? [];
  if (whole === undefined || choices === undefined) return [path];
  return choices.split(',').flatMap((one) => expandBraces(path.replace(whole, one)));
}

/**
 * Names of our flags and of metrics that the generated pages do not have. `known` is the text of those pages. A name that
 * ends in `_` or `*`, or is one of a histogram's three series, stands for what it begins or belongs to.
 */
export function nameFaults(known: string, pages: readonly MarkdownPage[] = markdownPages()): readonly string[] {
  const names = /--switchyard-[a-z-]+|\b(?:switchyard|kubeproxy|rest_client|nodejs)_[a-z0-9_]+\b/g;
  return pages.flatMap((page) =>
    [...new Set(page.text.match(names) ?? [])]
      .filter((name) => !isKnown(name, known))
      .map((name) => `${page.path}: ${name}: there is no such flag or metric`),
  );
}

function isKnown(name: string, known: string): boolean {
  if (name === 'switchyard_native' || name === 'switchyard_bpf') return true; // files of the addons
  if (name.endsWith('_') || name.endsWith('-')) return known.includes(name);
  const base = name.replace(/_(bucket|sum|count)$/, '');
  return new RegExp(`(?<![\\w-])${base}(?![\\w-])`).test(known);
}
