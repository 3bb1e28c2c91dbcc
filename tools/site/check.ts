import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Throws if a built site has a link or an anchor that leads nowhere, or loads anything from another server. */
export function checkSite(folder: string, base: string): void {
  const faults = siteFaults(folder, base);
  if (faults.length > 0) throw new Error(`the site in ${folder} has ${faults.length} fault(s):\n${faults.join('\n')}`);
}

/** Faults of a built site, as `page: address: why`. `base` is its path on the server, with a slash at both ends. */
export function siteFaults(folder: string, base: string): readonly string[] {
  const pages = new Map(
    globSync('**/*.html', { cwd: folder }).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  );
  const anchors = new Map([...pages].map(([path, html]) => [path, new Set(attributes(html, 'id'))]));
  const linkFault = (page: string, target: string): string | undefined => {
    const { pathname, hash } = new URL(target, `http://site${base}${page}`);
    if (!pathname.startsWith(base)) return `leads out of ${base}`;
    const path = decodeURIComponent(pathname.slice(base.length));
    const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
    if (!existsSync(join(folder, file))) return 'the site has no such file';
    const isThere = hash === '' || anchors.get(file)?.has(decodeURIComponent(hash.slice(1))) === true;
    return isThere ? undefined : 'the page has no such anchor';
  };
  const inPages = [...pages].flatMap(([page, html]) => [
    ...attributes(html, 'href')
      .filter((target) => !isExternal(target))
      .flatMap((target) => fault(page, target, linkFault(page, target))),
    ...[...loaded(html)].flatMap((target) =>
      fault(page, target, isExternal(target) ? foreign : linkFault(page, target)),
    ),
  ]);
  const styles = globSync('**/*.css', { cwd: folder }).map(
    (path) => [path, readFileSync(join(folder, path), 'utf8')] as const,
  );
  const inStyles = [...styles, ...pages].flatMap(([path, text]) =>
    [...text.matchAll(/(?:url\(|@import )['"]?((?:https?:)?\/\/[^'")]+)/g)].flatMap(([, target = '']) =>
      fault(path, target, foreign),
    ),
  );
  return [...inPages, ...inStyles];
}

const foreign = 'is on another server; the site must work offline';

function fault(path: string, target: string, why: string | undefined): readonly string[] {
  return why === undefined ? [] : [`${posix.normalize(path)}: ${target}: ${why}`];
}

function isExternal(target: string): boolean {
  return /^([a-z]+:|\/\/)/.test(target);
}

/** Addresses that a browser loads with the page. Data in the page itself is left out. */
function loaded(html: string): readonly string[] {
  const links = [...html.matchAll(/<link\b[^>]*>/g)].flatMap(([tag]) => attributes(tag, 'href'));
  return [...attributes(html, 'src'), ...links].filter((target) => !target.startsWith('data:'));
}

/** Values of an attribute in all tags. */
function attributes(html: string, name: string): readonly string[] {
  return [...html.matchAll(/<[a-z][^<>]*>/gi)].flatMap(([tag]) =>
    [...tag.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value.replaceAll('&amp;', '&')),
  );
}
