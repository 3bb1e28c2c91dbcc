/**
 * Text from elsewhere (logs, objects of a cluster) for a terminal: control characters, which could move the cursor or hide
 * lines, are written as `\x1b`. Line feeds and tabs stay.
 */
export function plainText(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\x${code.toString(16).padStart(2, '0')}`;
  });
}

/** Each line behind `indent` spaces. */
export function indented(text: string, indent: number): string {
  const space = ' '.repeat(indent);
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : space + line))
    .join('\n');
}
