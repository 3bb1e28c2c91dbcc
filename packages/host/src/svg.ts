/** Escapes text for HTML and SVG, attribute values included. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Attributes of one element; numbers are rounded to a tenth of a pixel. */
export type SvgAttributes = Readonly<Record<string, string | number>>;

/** One SVG element. `children` is markup; `title` becomes its tooltip. */
export function svgElement(name: string, attributes: SvgAttributes, children = '', title?: string): string {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : escapeHtml(value)}"`)
    .join('');
  const tooltip = title === undefined ? '' : `<title>${escapeHtml(title)}</title>`;
  return `<${name}${written}>${tooltip}${children}</${name}>`;
}

/** One line of text at a point. */
export function svgText(content: string, attributes: SvgAttributes): string {
  return svgElement('text', attributes, escapeHtml(content));
}
