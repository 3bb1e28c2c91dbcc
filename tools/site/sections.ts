import { dirname, join, normalize } from 'node:path';
import { linksOf, type MarkdownPage } from '../docs/markdown.ts';
import { filesOf, linkedPaths, sentenceCase, siteFile, sitePages, sitePath, titleOf } from './pages.ts';

/** Pages that stand together in the sidebar. */
export interface Group {
  readonly title: string;
  /** Relative to the checkout. */
  readonly folder: string;
  readonly pages: readonly MarkdownPage[];
}

/** The pages of one kind of reader. */
export interface Section extends Group {
  readonly groups: readonly Group[];
}

/** Folders of `docs` in the order of the navigation. Others need no entry: they follow by name. */
const order = ['operate', 'test', 'build-on', 'contribute', 'design', 'reference'];

/** Sections of pages outside of `docs`, by the first folder of their path; the empty one is the checkout's own folder. */
const outside: Readonly<Record<string, { readonly section: string; readonly group?: string }>> = {
  '': { section: 'contribute' },
  deploy: { section: 'operate' },
  packages: { section: 'build-on', group: 'packages' },
  apps: { section: 'build-on', group: 'packages' },
  examples: { section: 'build-on', group: 'examples' },
};

/** A page's section and group. The start page and pages directly in `docs` have none. */
function groupOf(path: string): { readonly section: string; readonly group?: string } | undefined {
  const folders = dirname(path).split('/');
  if (path === 'README.md' || dirname(path) === 'docs') return undefined;
  const [first = '', section = '', group] = folders;
  if (first === 'docs') return group === undefined ? { section } : { section, group: dirname(path) };
  const place = outside[first === '.' ? '' : first];
  if (place === undefined)
    throw new Error(`${path}: no section of the site has such pages; add one to "outside" in tools/site/sections.ts`);
  return place;
}

/** All sections. Pages and groups have the order of the list of all pages, docs/README.md; what it lacks follows by title. */
export function sections(pages: readonly MarkdownPage[] = sitePages()): readonly Section[] {
  const placed = pages.flatMap((page) => {
    const place = groupOf(page.path);
    return place === undefined ? [] : [{ page, ...place }];
  });
  const names = [...new Set([...order, ...placed.map(({ section }) => section).sort()])];
  const rank = rankOf(pages);
  const sorted = (some: readonly { readonly page: MarkdownPage }[]): readonly MarkdownPage[] =>
    some
      .map(({ page }) => page)
      .sort((a, b) => rank(a.path) - rank(b.path) || titleOf(a).localeCompare(titleOf(b), 'en', { numeric: true }));
  return names.map((name) => {
    const own = placed.filter(({ section }) => section === name);
    const groups = [...new Set(own.flatMap(({ group }) => group ?? []))];
    return {
      title: sentenceCase(name),
      folder: `docs/${name}`,
      pages: sorted(own.filter(({ group }) => group === undefined)),
      groups: groups.map((folder) => ({
        title: folderTitle(folder, pages),
        folder,
        pages: sorted(own.filter(({ group }) => group === folder)),
      })),
    };
  });
}

/** Targets in docs/README.md, relative to the checkout and without anchors. */
function listed(pages: readonly MarkdownPage[]): readonly string[] {
  return pages
    .filter(({ path }) => path === 'docs/README.md')
    .flatMap((page) => linksOf(page).map(({ target }) => normalize(join('docs', target.split('#')[0] ?? ''))));
}

function rankOf(pages: readonly MarkdownPage[]): (path: string) => number {
  const paths = listed(pages);
  return (path) => {
    if (path.endsWith('/README.md') && path.startsWith('docs/')) return -1;
    return paths.includes(path) ? paths.indexOf(path) : paths.length;
  };
}

/** A folder is named as docs/README.md names it in its link, for example `decision records`. */
function folderTitle(folder: string, pages: readonly MarkdownPage[]): string {
  const text = pages.find(({ path }) => path === 'docs/README.md')?.prose ?? '';
  const name = [...text.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].find(
    ([, , target = '']) => join('docs', target) === folder,
  );
  return sentenceCase(name?.[1] ?? folder.split('/').at(-1) ?? '');
}

/** The generated page of a folder that has no README.md. */
export interface FolderPage {
  /** The folder's path as one word. */
  readonly id: string;
  /** Relative to the checkout. */
  readonly folder: string;
  readonly content: string;
}

/** A list of its pages for each section and group, and a list of its files for each other folder that a page links to. */
export function folderPages(pages: readonly MarkdownPage[] = sitePages()): readonly FolderPage[] {
  const all = sections(pages);
  const groups = all.flatMap((section) => section.groups);
  const lacksPage = (folder: string): boolean => !pages.some(({ path }) => path === `${folder}/README.md`);
  const lists = [
    ...all.map((section) => ({ folder: section.folder, content: sectionList(section) })),
    ...groups.map(({ folder, title, pages: some }) => ({ folder, content: `# ${title}\n\n${pageList(some)}\n` })),
  ].filter(({ folder }) => folder.startsWith('docs/') && lacksPage(folder));
  const others = linkedPaths(pages).folders.filter((folder) => !lists.some((list) => list.folder === folder));
  return [...lists, ...others.map((folder) => ({ folder, content: `# ${folder}\n\n${fileList(folder)}\n` }))].map(
    ({ folder, content }) => ({ id: folder.replaceAll('/', '-'), folder, content }),
  );
}

function sectionList({ title, pages, groups }: Section): string {
  const parts = groups.map((group) => `## ${group.title}\n\n${pageList(group.pages)}`);
  return [`# ${title}`, pageList(pages), ...parts, ''].join('\n\n');
}

function pageList(pages: readonly MarkdownPage[]): string {
  return pages.map((page) => `- [${titleOf(page)}](/${sitePath(page.path)})`).join('\n');
}

function fileList(folder: string): string {
  return filesOf(folder)
    .map((path) => `- [${path.slice(folder.length + 1)}](/${path.endsWith('.md') ? sitePath(path) : siteFile(path)})`)
    .join('\n');
}
