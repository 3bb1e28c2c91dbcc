/** Escapes text for HTML and SVG, attribute values included. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** One SVG element. `children` is markup; `title` becomes its tooltip. Numbers are rounded to a tenth of a pixel. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  children = '',
  title?: string,
): string {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : escapeHtml(value)}"`)
    .join('');
  const tooltip = title === undefined ? '' : `<title>${escapeHtml(title)}</title>`;
  return `<${name}${written}>${tooltip}${children}</${name}>`;
}

/** Text at a point. */
export function label(content: string, attributes: Readonly<Record<string, string | number>>): string {
  return element('text', attributes, escapeHtml(content));
}
