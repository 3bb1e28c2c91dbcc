import { dirname, relative } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';
import type { MarkdownPage } from '../../docs/markdown.ts';
import { root } from '../../workspace.ts';
import { checkSite } from '../check.ts';
import { copyFiles, otherPages, sitePages, sitePath, titleOf } from '../pages.ts';
import { markdown, searchText } from '../markdown.ts';
import { folderPages, type Group, sections } from '../sections.ts';

const pages = sitePages();
const byPath = new Map(pages.map((page) => [page.path, page]));
const folders = new Map(folderPages(pages).map(({ id, folder }) => [`tools/site/folders/${id}.md`, folder]));

const folderLink = (folder: string): string => `/${sitePath(`${folder}/README.md`)}`;

const item = (page: MarkdownPage): DefaultTheme.NavItemWithLink => ({
  text: titleOf(page),
  link: `/${sitePath(page.path)}`,
});

/** Pages directly in `docs`, such as the figures. */
const single = pages.filter(({ path }) => dirname(path) === 'docs' && path !== 'docs/README.md').map(item);

/** Closed, but for what operators read. */
const group = (
  { title, folder, pages }: Group,
  more: readonly DefaultTheme.SidebarItem[] = [],
): DefaultTheme.SidebarItem => ({
  text: title,
  ...(folder.startsWith('docs/') ? { link: folderLink(folder) } : {}),
  collapsed: folder !== 'docs/operate',
  items: [...pages.filter(({ path }) => path !== `${folder}/README.md`).map(item), ...more],
});

const sidebar = [
  { text: 'Start', link: '/' },
  ...sections(pages).map((section) =>
    group(
      section,
      section.groups.map((one) => group(one)),
    ),
  ),
  ...single,
  { text: 'All pages', link: '/docs.md' },
];

/** Weight of a search result: pages of operators first, long generated lists last. Runs in the browser as it stands here. */
const boostDocument = (id: string): number =>
  /\/reference\/(api\/|conformance-cases|mutants)/.test(id) ? 0.2 : /\/operate\//.test(id) ? 2 : 1;

export default defineConfig({
  title: 'Switchyard',
  description: 'A Kubernetes Service proxy in the place of kube-proxy: nftables, iptables or eBPF',
  lang: 'en',
  // Pages stay where GitHub shows them; paths below are relative to this project, or to the checkout in patterns.
  srcDir: relative(`${root}/tools/site`, root),
  srcExclude: [...otherPages(), '.nx/**', '**/dist-bundle/**'],
  outDir: '../../dist/site',
  cacheDir: '../../node_modules/.cache/site',
  rewrites: (path) => sitePath(folders.has(path) ? `${folders.get(path)}/README.md` : path),
  vite: { build: { chunkSizeWarningLimit: 1000 } }, // kB; the search index is the largest
  // Without a request to any other server.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown,
  themeConfig: {
    nav: [
      ...sections(pages).map(({ title, folder }) => ({
        text: title,
        link: folderLink(folder),
        activeMatch: `^/${sitePath(`${folder}/`)}`,
      })),
      ...single,
    ],
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: 'local', options: { _render: searchText, miniSearch: { searchOptions: { boostDocument } } } },
  },
  transformPageData: (page) => {
    const source = byPath.get(page.filePath);
    return page.title === '' && source !== undefined ? { title: titleOf(source) } : undefined;
  },
  buildEnd: ({ outDir, site }) => {
    copyFiles(outDir);
    checkSite(outDir, site.base);
  },
});
