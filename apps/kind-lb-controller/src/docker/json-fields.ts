import { HostError } from '@switchyard/core';

/** An object out of JSON of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object, or one without fields. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The list, or an empty one. */
export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** The text, unless it is empty or none. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The fields that are texts. */
export function textsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fieldsOf(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Parses what `command` printed. Throws `HostError` that shows the beginning of what is no JSON. */
export function parseJson(text: string, command: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const shown = JSON.stringify(text.slice(0, 200));
    throw new HostError('docker.json', `the container engine answered '${command}' with what is no JSON: ${shown}`, {
      cause,
    });
  }
}
