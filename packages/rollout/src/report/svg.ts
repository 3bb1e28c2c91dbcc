/** Escapes text for HTML and SVG, attribute values included. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Attributes of one element; numbers are rounded to a tenth of a pixel. */
export type Attributes = Readonly<Record<string, string | number>>;

/** One SVG element. `children` is markup; `title` becomes its tooltip. */
export function element(name: string, attributes: Attributes, children = '', title?: string): string {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : escapeHtml(value)}"`)
    .join('');
  const tooltip = title === undefined ? '' : `<title>${escapeHtml(title)}</title>`;
  return `<${name}${written}>${tooltip}${children}</${name}>`;
}

/** One line of text at a point. */
export function text(content: string, attributes: Attributes): string {
  return element('text', attributes, escapeHtml(content));
}

/** Maps seconds to pixels. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly left: number;
  readonly width: number;
}

/** The pixel of a time, clamped to the picture. */
export function pixelOf(scale: Scale, second: number): number {
  const share = (second - scale.from) / (scale.to - scale.from);
  return scale.left + Math.min(1, Math.max(0, share)) * scale.width;
}

/** Round tick positions, about `wanted` of them. */
export function ticksOf(scale: Scale, wanted: number): readonly number[] {
  const rough = (scale.to - scale.from) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power * 10;
  const ticks: number[] = [];
  for (let index = Math.ceil(scale.from / step); index * step <= scale.to + 1e-9; index++) ticks.push(index * step);
  return ticks;
}
