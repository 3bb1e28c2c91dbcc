/** Returns the name closest to `text`, ignoring case; undefined if none is close. */
export function nearestName(text: string, names: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Math.floor(text.length / 4) + 2; // more differences than a typing error has
  for (const name of names) {
    const distance = editDistance(text.toLowerCase(), name.toLowerCase());
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

/** Number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein). */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...a].entries()) {
    const own = [row + 1];
    for (let at = 1; at <= b.length; at++) {
      const replaced = (above[at - 1] ?? 0) + (letter === b[at - 1] ? 0 : 1);
      own.push(Math.min(replaced, (above[at] ?? 0) + 1, (own[at - 1] ?? 0) + 1));
    }
    above = own;
  }
  return above[b.length] ?? 0;
}
