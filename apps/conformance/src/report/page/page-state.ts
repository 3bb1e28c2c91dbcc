/** Selection of the reader, which is part of the address behind the `#`, so that it can be shared. */
export interface PageState {
  /** Words that a row must have, in its id, title or tags. */
  readonly words: string;
  /** Letters of statuses, as `cellMarks` writes them, and `d` for rows that differ. Empty: all. */
  readonly statuses: string;
  /** Empty: all. */
  readonly tag: string;
  /** Key of the only column to show; empty: all. */
  readonly only: string;
  /** The case whose details are shown, and the proxy that was pointed at. Empty: none. */
  readonly caseId: string;
  readonly proxy: string;
}

/** Names in the address, by field. */
const names: Readonly<Record<keyof PageState, string>> = {
  words: 'q',
  statuses: 'status',
  tag: 'tag',
  only: 'only',
  caseId: 'case',
  proxy: 'proxy',
};

/** `#case=...&proxy=...` as a state; what is not named is empty. */
export function parseHash(hash: string): PageState {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const entries = Object.entries(names).map(([field, name]) => [field, query.get(name) ?? '']);
  return Object.fromEntries(entries) as Record<keyof PageState, string>;
}

/** The other way round; slashes stay as they are, so that a person can read the address. */
export function formatHash(state: PageState): string {
  const query = new URLSearchParams();
  for (const [field, name] of Object.entries(names)) {
    const value = state[field as keyof PageState];
    if (value !== '') query.set(name, value);
  }
  return query.toString().replaceAll('%2F', '/');
}

export interface RowFacts {
  /** Id, title and tags in lower case. */
  readonly text: string;
  readonly tags: readonly string[];
  /** Letters of each column. */
  readonly marks: readonly string[];
  readonly differs: boolean;
}

/** Whether a row passes the filter. `column` is the index of the only column, -1 for all. */
export function isShown(row: RowFacts, state: PageState, column: number): boolean {
  const { words, statuses, tag } = state;
  if (tag !== '' && !row.tags.includes(tag)) return false;
  const marks = column < 0 ? row.marks.join('') : (row.marks[column] ?? '-');
  if (column >= 0 && marks === '-') return false;
  const isWanted = statuses === '' || [...statuses].some((one) => (one === 'd' ? row.differs : marks.includes(one)));
  return isWanted && wordsOf(words).every((word) => row.text.includes(word));
}

/** Whether a row has a failure, an error or a flaky verdict. */
export function isBad({ marks }: RowFacts): boolean {
  return marks.some((mark) => /[fe~]/.test(mark));
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether anything but the details is chosen. */
export function isFiltered({ words, statuses, tag, only }: PageState): boolean {
  return words.trim() !== '' || statuses !== '' || tag !== '' || only !== '';
}
