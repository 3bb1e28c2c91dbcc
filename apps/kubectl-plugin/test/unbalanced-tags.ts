/** Tags of a page that are not closed, or are closed and not open. For tests of pages that are well-formed XML besides their head. */
export function unbalancedTags(html: string): readonly string[] {
  const open: string[] = [];
  const faults: string[] = [];
  for (const [, slash, name = '', end] of html.matchAll(
    /<(\/?)([a-z][a-z0-9]*)(?:\s+[a-zA-Z][\w-]*="[^"<]*")*\s*(\/?)>/g,
  )) {
    if (end === '/') continue;
    if (slash === '') open.push(name);
    else if (open.pop() !== name) faults.push(`</${name}>`);
  }
  const tags = html
    .replace('<!doctype html>', '')
    .replaceAll(/<\/?[a-z][a-z0-9]*(?:\s+[a-zA-Z][\w-]*="[^"<]*")*\s*\/?>/g, '');
  return [...faults, ...open.map((name) => `<${name}>`), ...(tags.match(/<[^\n]{0,40}/g) ?? [])];
}
