import type { YamlDocument } from '@switchyard/core/manifests';
import { valueOfData } from './read-value.ts';
import { type Field, fieldAt, type Schema } from './schema/field.ts';
import type { GivenSettings, Problem, Setting } from './settings.ts';
import { readFile } from 'node:fs/promises';
import { ConfigError, messageOf } from '@switchyard/core';
import type { ConfigFiles } from './effective.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import { kubeProxySchema } from './schema/kube-proxy-fields.ts';
import { switchyardSchema } from './schema/switchyard-fields.ts';

interface ReadFiles {
  readonly files: ConfigFiles;
  readonly texts: ReadonlyMap<string, string>;
}

/** Reads the files that flags name. Rejects with `ConfigError` when one cannot be read at all. */
export async function readConfigFiles(flags: FlagValues): Promise<ReadFiles> {
  const texts = new Map<string, string>();
  const decode = async (flag: string, schema: Schema): Promise<DecodedFile | undefined> => {
    const file = flags.get(flag)?.texts.at(-1) ?? '';
    if (file === '') return undefined;
    const text = await readConfigFile(file, `--${flag}`);
    texts.set(file, text);
    // The YAML reader costs memory; it is loaded only if there is a file.
    const { parseYaml } = await import('@switchyard/core/manifests');
    return decodeFile(schema, file, parseYaml(text, { duplicateKeys: 'keep' }));
  };
  const files = {
    kubeProxy: await decode('config', kubeProxySchema),
    switchyard: await decode('switchyard-config', switchyardSchema),
  };
  return { files, texts };
}

/** The text of a file. Rejects with `ConfigError`, which begins with `what`. */
export async function readConfigFile(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const reason = messageOf(cause);
    const text = reason.replace(/^E[A-Z0-9]+: ([^,]+), .*$/, '$1'); // without the system call; the message names the file
    throw new ConfigError('config.unreadable', `${what}: cannot read the file ${file}: ${text}`, { cause });
  }
}

/** Contents of a file. */
export interface DecodedFile {
  readonly given: GivenSettings;
  /** Unknown fields, duplicates and further documents: strict decoding would have failed. With path and line, one sentence part each. */
  readonly leniencies: readonly string[];
  readonly problems: readonly Problem[];
}

interface Decoding {
  readonly schema: Schema;
  readonly file: string;
  readonly document: YamlDocument;
  readonly given: Map<string, Setting>;
  readonly leniencies: string[];
  readonly problems: Problem[];
}

/** Decodes a file strictly, and leniently where that fails; `documents` is what the YAML reader found in it. */
function decodeFile(schema: Schema, file: string, documents: readonly YamlDocument[]): DecodedFile {
  const given = new Map<string, Setting>();
  const problems: Problem[] = [];
  const leniencies: string[] = [];
  const whole = (line: number, why: string): DecodedFile => ({
    given,
    leniencies,
    problems: [{ path: schema.kind, origin: { kind: 'file', file, line }, value: undefined, why }],
  });
  const [document, second] = documents.filter(({ value, errors }) => errors.length > 0 || (value ?? null) !== null);
  if (document === undefined) return whole(1, `the file is empty; it needs apiVersion: ${schema.apiVersion}`);
  const [error] = document.errors;
  if (error !== undefined) return whole(error.line, `not YAML: ${error.message}`);
  if (!isObject(document.value)) return whole(document.locate([]).line, 'it is not one object');
  const wrongType = typeProblem(schema, document);
  if (wrongType !== undefined) return whole(document.locate([]).line, wrongType);
  if (second !== undefined)
    leniencies.push(
      `a second document (line ${second.errors[0]?.line ?? second.locate([]).line}; only the first counts)`,
    );
  for (const { line, message } of document.duplicates) leniencies.push(`${message} (line ${line}; the last counts)`);
  const { apiVersion: _, kind: __, ...body } = document.value;
  decodeObject({ schema, file, document, given, leniencies, problems }, [], body);
  return { given, leniencies, problems };
}

type Data = Readonly<Record<string, unknown>>;

function decodeObject(decoding: Decoding, path: readonly string[], data: Data): void {
  const { schema, document } = decoding;
  for (const [key, value] of Object.entries(data)) {
    const here = [...path, key];
    const name = here.join('.');
    const { line } = document.locate(here);
    const field = fieldAt(schema, name);
    if (field !== undefined) {
      decodeField(decoding, field, { value, line });
    } else if (schema.fields.some((one) => one.path.startsWith(`${name}.`))) {
      if (isObject(value)) decodeObject(decoding, here, value);
      else if (value !== null) refuse(decoding, name, { value, line, why: 'must be an object' });
    } else {
      decoding.leniencies.push(`unknown field "${name}" (line ${line})`);
    }
  }
}

function decodeField(decoding: Decoding, field: Field, { value, line }: { value: unknown; line: number }): void {
  if (value === null) return; // unset; kubeadm's file has many such fields
  const { path, type } = field;
  const result = valueOfData(type, value);
  if (result.status === 'refused') refuse(decoding, path, { value, line, why: result.why });
  else decoding.given.set(path, { value: result.value, origin: { kind: 'file', file: decoding.file, line } });
}

function refuse(decoding: Decoding, path: string, fault: { value: unknown; line: number; why: string }): void {
  const { schema, file, problems } = decoding;
  const origin = { kind: 'file', file, line: fault.line } as const;
  problems.push({ path: `${schema.kind}.${path}`, origin, value: fault.value, why: fault.why });
}

function typeProblem({ apiVersion, kind }: Schema, document: YamlDocument): string | undefined {
  const found = document.value as Data;
  if (found['apiVersion'] === apiVersion && found['kind'] === kind) return undefined;
  const said = `apiVersion ${JSON.stringify(found['apiVersion'])}, kind ${JSON.stringify(found['kind'])}`;
  return `it says ${said}; it must be apiVersion: ${apiVersion}, kind: ${kind}`;
}

function isObject(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
