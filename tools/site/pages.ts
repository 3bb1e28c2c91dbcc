import { cpSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { linksOf, type MarkdownPage, markdownPages } from '../docs/markdown.ts';
import { root } from '../workspace.ts';

/** Pages of the checkout that the site shows, by path: all but those of tools, of GitHub and of test fixtures. */
export function sitePages(pages: readonly MarkdownPage[] = markdownPages()): readonly MarkdownPage[] {
  return pages.filter(({ path }) => isOnSite(path));
}

function isOnSite(path: string): boolean {
  return !/(^|\/)\.|^tools\/|\/fixtures\//.test(path);
}

/** Pages that the site leaves out, by path. */
export function otherPages(): readonly string[] {
  return markdownPages().flatMap(({ path }) => (isOnSite(path) || path.startsWith('tools/site/') ? [] : [path]));
}

/** A page's path on the site, with `.md`: the start page is README.md, and pages below `docs` have no `docs/`. */
export function sitePath(path: string): string {
  if (path === 'docs/README.md') return 'docs.md';
  return path.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The site's path of a file that is no page. A name without an extension gets one, else servers take it for a page; VitePress does so with `.sh`. */
export function siteFile(path: string): string {
  return basename(path).includes('.') && !path.endsWith('.sh') ? path : `${path}.txt`;
}

/** A link of the page `from` as it must stand on the site. Addresses, anchors and absolute paths stay as they are. */
export function siteLink(from: string, target: string): string {
  if (/^([a-z]+:|#|\/)/.test(target)) return target;
  const [file = '', anchor] = target.split('#');
  const path = normalize(join(dirname(from), file)).replace(/\/$/, '');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (path.endsWith('.md')) return `/${sitePath(path)}${hash}`;
  return isFolder(path) ? `/${sitePath(`${path}/README.md`)}` : `/${siteFile(path)}`;
}

/** The first heading without its markup; an API report is named by its entry point, a page without a heading by its file. */
export function titleOf({ path, prose }: MarkdownPage): string {
  const heading = /^#+ +(.*?) *$/m.exec(prose)?.[1]?.replaceAll('`', '');
  if (heading === undefined) return sentenceCase(basename(path, '.md'));
  const [, entry, scope = '', name = ''] = /^API Report File for "((@[^/]+\/)(.*))"$/.exec(heading) ?? [];
  if (entry === undefined) return heading;
  const room = basename(path, '.api.md').slice(name.length + 1);
  return room === '' ? entry : `${scope}${name}/${room}`;
}

export function sentenceCase(name: string): string {
  const words = name.replaceAll(/[-_]/g, ' ').toLowerCase();
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** Targets of links besides pages and images, relative to the checkout. */
export function linkedPaths(pages: readonly MarkdownPage[] = sitePages()): {
  readonly files: readonly string[];
  /** Folders without a README.md. */
  readonly folders: readonly string[];
} {
  const targets = pages.flatMap((page) =>
    linksOf(page)
      .filter(({ target }) => !/^[a-z]+:|^#|\.md(#|$)|\.(png|svg)$/.test(target))
      .map(({ target }) => normalize(join(dirname(page.path), target)).replace(/\/$/, '')),
  );
  const paths = [...new Set(targets)].sort();
  const hasPage = (folder: string): boolean => pages.some(({ path }) => path === `${folder}/README.md`);
  const folders = paths.filter((path) => isFolder(path) && !hasPage(path));
  const isShown = (path: string): boolean => !isFolder(path) && !path.endsWith('.md');
  const inFolders = folders.flatMap((folder) => filesOf(folder).filter(isShown));
  return { files: [...new Set([...paths.filter((path) => !isFolder(path)), ...inFolders])].sort(), folders };
}

/** Everything in a folder, relative to the checkout. */
export function filesOf(folder: string): readonly string[] {
  return readdirSync(join(root, folder))
    .sort()
    .map((name) => `${folder}/${name}`);
}

function isFolder(path: string): boolean {
  return statSync(join(root, path)).isDirectory();
}

/** Copies the files of the checkout that pages link to. */
export function copyFiles(outFolder: string): void {
  for (const file of linkedPaths().files) {
    const to = join(outFolder, siteFile(file));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(root, file), to);
  }
}
