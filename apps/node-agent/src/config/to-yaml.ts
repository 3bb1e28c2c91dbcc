import type { Plain, PlainObject } from './documents.ts';

/** Formats plain data as YAML in block style; quotes texts that could be read as another type. */
export function toYaml(data: PlainObject): string {
  return linesOf(data).join('\n') + '\n';
}

function linesOf(data: PlainObject): readonly string[] {
  return Object.entries(data).flatMap(([key, value]) => {
    const name = `${scalar(key)}:`;
    if (typeof value !== 'object' || value === null) return [`${name} ${scalar(value)}`];
    if (Array.isArray(value)) {
      return value.length === 0 ? [`${name} []`] : [name, ...value.flatMap((one: Plain) => itemLines(one))];
    }
    const inner = linesOf(value as PlainObject); // neither a scalar nor a list
    return inner.length === 0 ? [`${name} {}`] : [name, ...inner.map((line) => `  ${line}`)];
  });
}

function itemLines(item: Plain): readonly string[] {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return [`- ${scalar(item)}`];
  return linesOf(item as PlainObject).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`);
}

/** Quotes words such as `yes` and `1e3`, which YAML readers interpret differently. */
function scalar(value: Plain): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  const isPlain = /^[A-Za-z][\w./-]*$/.test(value) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}
