/**
 * Text for XML 1.0 and HTML, attributes included: line feeds and tabs survive there as character references. What XML cannot
 * hold at all (control characters, halves of surrogate pairs) becomes U+FFFD.
 */
export function escapeMarkup(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll(/[&<>"'\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Values of attributes; undefined leaves the attribute out, numbers are rounded to a tenth. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** One element; `children` is markup, and without any the element is closed at once, as XML and SVG may be. */
export function element(name: string, attributes: Attributes, children = ''): string {
  const start = `<${name}${attributesText(attributes)}`;
  return children === '' ? `${start}/>` : `${start}>${children}</${name}>`;
}

/** Like `element` for HTML, where an empty element needs an end tag. */
export function tag(name: string, attributes: Attributes, children = ''): string {
  return `<${name}${attributesText(attributes)}>${children}</${name}>`;
}

function attributesText(attributes: Attributes): string {
  return Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? rounded(value) : escapeMarkup(value ?? '')}"`)
    .join('');
}

function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}
