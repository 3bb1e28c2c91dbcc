/** Words that begin, join or end compound commands; another command may follow them on the line. */
const reserved = new Set(['do', 'done', 'then', 'else', 'fi', 'if', 'while', 'until', '!', '{', '}']);

/**
 * The simple commands of a shell text as lists of words, those in `$(...)` too: without assignments, redirections, comments and here-documents. Not
 * a shell: as much of one as pages of documentation need. `sh -n` checks the rest.
 */
export function simpleCommands(text: string): readonly (readonly string[])[] {
  const commands: string[][] = [];
  let words: string[] = [];
  const end = (): void => {
    const command = withoutPrefix(words);
    if (command.length > 0) commands.push(command);
    words = [];
  };
  const source = withoutDocuments(text.replaceAll('\\\n', ' '));
  let at = 0;
  while (at < source.length) {
    const rest = source.slice(at);
    const [blank = ''] = /^[ \t]+/.exec(rest) ?? [];
    const [comment = ''] = /^#[^\n]*/.exec(rest) ?? [];
    const [redirection = ''] = /^\d*[<>]+&?\s*[^\s;|&()]+/.exec(rest) ?? [];
    const [operator = ''] = /^[\n;|&()]+/.exec(rest) ?? [];
    if (operator !== '') end();
    const skipped = blank || comment || redirection || operator;
    if (skipped !== '') {
      at += skipped.length;
      continue;
    }
    const word = readWord(source, at);
    for (const inner of word.inner) commands.push(...simpleCommands(inner).map((one) => [...one]));
    words.push(word.text);
    at = word.end;
  }
  end();
  return commands;
}

/** Loops over words, `do` and the like, and settings before the command's name. */
function withoutPrefix(words: readonly string[]): string[] {
  const [first] = words;
  if (first === undefined || first === 'for') return [];
  return reserved.has(first) || /^\w+=/.test(first) ? withoutPrefix(words.slice(1)) : [...words];
}

function withoutDocuments(text: string): string {
  return text.replaceAll(/<<-?\s*'?(\w+)'?([^\n]*)\n[^]*?^\1$/gm, (_, _word, rest: string) => rest);
}

interface Word {
  readonly text: string;
  readonly end: number;
  /** Texts of the substitutions within. */
  readonly inner: readonly string[];
}

function readWord(source: string, start: number): Word {
  const inner: string[] = [];
  let text = '';
  let at = start;
  let isQuoted = false;
  for (; at < source.length; at++) {
    const char = source[at] ?? '';
    if (char === "'" && !isQuoted) {
      const close = source.indexOf("'", at + 1);
      text += source.slice(at + 1, close);
      at = close;
    } else if (char === '"') isQuoted = !isQuoted;
    else if (source.startsWith('$(', at)) {
      const close = closingOf(source, at + 2);
      inner.push(source.slice(at + 2, close));
      text += '$()';
      at = close;
    } else if (!isQuoted && /[\s;|&()<>]/.test(char)) break;
    else text += char;
  }
  return { text, end: at, inner };
}

/** Where the parenthesis closes that is open. */
function closingOf(source: string, from: number): number {
  let depth = 1;
  for (let at = from; at < source.length; at++) {
    if (source[at] === '(') depth += 1;
    else if (source[at] === ')' && (depth -= 1) === 0) return at;
  }
  return source.length;
}
