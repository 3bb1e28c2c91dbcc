import { Refused } from './refused.ts';

/** The words of a line, as iptables-restore cuts it: at blanks, with quotes that may hold blanks and escaped characters. */
export function splitWords(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(/[ \t]+/).filter((word) => word !== '');
  const words: string[] = [];
  for (const found of line.matchAll(/"((?:[^"\\]|\\.)*)"|(")|[^ \t"]+/g)) {
    const [all, inQuotes, stray] = found;
    if (stray !== undefined) throw new Refused('bare', 'Unterminated quoted string');
    words.push(inQuotes === undefined ? all : inQuotes.replace(/\\(.)/g, '$1'));
  }
  return words;
}
