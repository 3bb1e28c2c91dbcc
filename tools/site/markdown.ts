import { relative } from 'node:path';
import { renderMermaidSVG } from 'beautiful-mermaid';
import type { MarkdownEnv, MarkdownOptions, MarkdownRenderer } from 'vitepress';
import { anchorOf } from '../docs/markdown.ts';
import { root } from '../workspace.ts';
import { siteLink } from './pages.ts';

/** Characters of a table's cell from which the style gives it a minimum width. */
const longCell = 40;

/** Options that make VitePress read pages as GitHub does: no attributes in braces, no smileys, GitHub's heading ids. */
export const markdown: MarkdownOptions = {
  anchor: { slugify: anchorOf },
  attrs: { disable: true },
  emoji: { shortcuts: {} },
  languageAlias: { nft: 'sh' }, // VitePress has no colours for nft; its comments are those of sh
  config: likeGitHub,
};

/** Links between files of the checkout, readable tables, diagrams of `mermaid` blocks. */
function likeGitHub(md: MarkdownRenderer): void {
  md.core.ruler.push('checkout-links', ({ tokens, env }) => {
    const page = pageOf(env);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const target = token.type === 'link_open' ? token.attrGet('href') : null;
      if (target !== null) token.attrSet('href', siteLink(page, target));
    }
  });
  md.core.ruler.push('long-cells', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      const isLong = token.type === 'td_open' && (tokens[index + 1]?.content.length ?? 0) > longCell;
      if (isLong) token.attrJoin('class', 'long');
    }
  });
  // Indented blocks get the frame of fenced ones, which scrolls.
  md.core.ruler.push('indented-code', ({ tokens }) => {
    for (const token of tokens.filter(({ type }) => type === 'code_block')) token.type = 'fence';
  });
  const fence = md.renderer.rules.fence;
  if (fence === undefined)
    throw new Error('cannot draw diagrams: VitePress has no renderer of code blocks; see tools/site/markdown.ts');
  md.renderer.rules.fence = (tokens, index, ...more) => {
    const token = tokens[index];
    // Colours make the reports of exported names ten times as large, for a third of the time of a build.
    if (token !== undefined && pageOf(more[1]).endsWith('.api.md')) token.info = '';
    if (token?.info.trim() !== 'mermaid') return fence(tokens, index, ...more);
    return `<div class="diagram" v-html="${md.utils.escapeHtml(JSON.stringify(diagram(token.content)))}"></div>\n`;
  };
}

/** A page's path in the checkout from the state that VitePress passes on; it has a `realPath` outside of the search index. */
function pageOf(env: MarkdownEnv & { readonly realPath?: string }): string {
  return relative(root, env.realPath ?? env.path);
}

/** HTML of a page for the search index: without the colours of code, which take half of the time of a build. */
export function searchText(text: string, env: MarkdownEnv, md: MarkdownRenderer): string {
  const { highlight } = md.options;
  md.set({ highlight: null });
  try {
    return md.render(text, env);
  } finally {
    md.set({ highlight: highlight ?? null });
  }
}

const diagrams = new Map<string, string>();

/** A diagram as SVG in the colours of the page. The same text is drawn once. */
export function diagram(text: string): string {
  const known = diagrams.get(text);
  if (known !== undefined) return known;
  const colours = { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true };
  // The library asks a public server for its font; the page has that font already.
  const svg = renderMermaidSVG(text, colours).replace(/@import url\([^)]*\);/, '');
  diagrams.set(text, svg);
  return svg;
}
