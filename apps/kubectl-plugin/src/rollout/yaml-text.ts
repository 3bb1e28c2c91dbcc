/** JSON values as YAML, block style, with `indent` spaces before each line. Ends with a newline. */
export function yamlText(value: object, indent: number = 0): string {
  const margin = ' '.repeat(indent);
  if (Array.isArray(value)) {
    return value
      .map((one: unknown) =>
        isBlock(one) ? `${margin}-${yamlText(one, indent + 2).slice(indent + 1)}` : `${margin}- ${scalar(one)}\n`,
      )
      .join('');
  }
  return Object.entries(value)
    .map(([field, one]: [string, unknown]) =>
      isBlock(one) ? `${margin}${field}:\n${yamlText(one, indent + 2)}` : `${margin}${field}: ${scalar(one)}\n`,
    )
    .join('');
}

function isBlock(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** Quoted unless it is a plain word that YAML reads as text. */
function scalar(value: unknown): string {
  const isPlain =
    typeof value === 'string' &&
    /^[A-Za-z][\w./-]*$/.test(value) &&
    !/^(y|n|yes|no|true|false|on|off|null)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}
