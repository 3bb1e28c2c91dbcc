/**
 * Names of tests out of what `e2e.test --list-tests` prints: one line per test, its place in upstream's sources, a colon, its full name. Other
 * lines are ignored.
 */
export function parseTestList(text: string): readonly string[] {
  return [...text.matchAll(/^\s+\S+:\d+: (\[sig-.*\S)\s*$/gm)].map(([, name = '']) => name);
}
