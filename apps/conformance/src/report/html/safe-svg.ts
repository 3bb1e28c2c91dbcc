const elements = new Set(
  'svg g rect line path text tspan title desc circle ellipse polyline polygon defs clipPath linearGradient stop'.split(
    ' ',
  ),
);
const attributes = new Set(
  (
    'viewBox width height x y x1 y1 x2 y2 dx dy r rx ry cx cy d points transform class role aria-label aria-hidden fill stroke ' +
    'stroke-width stroke-dasharray stroke-linecap opacity fill-opacity text-anchor font-size font-weight offset stop-color xmlns'
  ).split(' '),
);

const token = /<(\/?)([A-Za-z]+)((?:\s+[A-Za-z][\w:-]*="[^"<]*")*)\s*(\/?)>|[^<]+/y;
const attribute = /\s+([A-Za-z][\w:-]*)="([^"<]*)"/g;

/**
 * A drawing from a report file, if it contains only shapes and text. The page includes it unchanged, and report files are untrusted. Its own styles are left out, for the page has them. Undefined for all else: an unknown element or attribute, a link,
 * a script, markup that is not closed.
 */
export function safeSvg(markup: string): string | undefined {
  const open: string[] = [];
  const text = markup.trim().replaceAll(/<style>[^<]*<\/style>/g, '');
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const wasInside = open.length > 0 || token.lastIndex === 0;
    const match = token.exec(text);
    if (match === null || !wasInside) return undefined;
    const [, slash, name, written = '', end] = match;
    if (name === undefined) {
      if (open.length === 0) return undefined;
      continue;
    }
    if (!elements.has(name) || (open.length === 0 && name !== 'svg') || !areSafe(written)) return undefined;
    if (slash === '/') {
      if (open.pop() !== name) return undefined;
    } else if (end !== '/') open.push(name);
  }
  return open.length === 0 && text.startsWith('<svg') ? text : undefined;
}

function areSafe(written: string): boolean {
  return [...written.matchAll(attribute)].every(([, name = '', value = '']) => {
    if (name === 'xmlns') return value === 'http://www.w3.org/2000/svg';
    return attributes.has(name) && !/url\s*\(|javascript:|&#?x?0*(?:58|3a);/i.test(value);
  });
}
