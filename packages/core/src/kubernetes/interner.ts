/** Gives equal strings one shared copy. */
export interface Interner {
  /** The first string equal to `text` that was passed in. */
  intern(text: string): string;
}

/** Names that come and go for months (nodes of an autoscaled pool) must not add up to a leak. */
const maxStrings = 20_000;

/**
 * An interner for strings that repeat all over a cluster: node names, zones, port names. Every JSON
 * document brings its own copies; at 100,000 endpoints they would weigh more than the records. It
 * forgets everything when it has grown too large: later strings get new copies, which is only
 * larger, never wrong.
 */
export function newInterner(): Interner {
  const strings = new Map<string, string>();
  return {
    intern(text: string): string {
      const known = strings.get(text);
      if (known !== undefined) return known;
      if (strings.size >= maxStrings) strings.clear();
      strings.set(text, text);
      return text;
    },
  };
}
