/** One entry of an `Accept` header. */
export interface MediaRange {
  /** Such as `application/json` or `text/*`, in lower case. */
  readonly type: string;
  /** Without `q`; names in lower case, values as given without quotes. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Media types that a client accepts, best first; entries of equal weight in its order. Empty without a header. */
export function parseAccept(header: string | undefined): readonly MediaRange[] {
  const ranges = (header ?? '').split(',').flatMap((entry) => {
    const [type = '', ...rest] = entry.split(';').map((part) => part.trim());
    if (type === '') return [];
    const parameters = new Map(rest.map(parseParameter));
    const weight = Number(parameters.get('q') ?? '1');
    parameters.delete('q');
    return [{ range: { type: type.toLowerCase(), parameters }, weight: Number.isNaN(weight) ? 0 : weight }];
  });
  return ranges
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .map(({ range }) => range);
}

/** Whether `range` includes the media type `type/subtype`. */
export function includesType(range: MediaRange, type: string): boolean {
  return range.type === type || range.type === '*/*' || range.type === `${type.split('/')[0]}/*`;
}

function parseParameter(text: string): readonly [string, string] {
  const [name = '', ...value] = text.split('=');
  return [name.trim().toLowerCase(), value.join('=').trim().replaceAll(/^"|"$/g, '')];
}
