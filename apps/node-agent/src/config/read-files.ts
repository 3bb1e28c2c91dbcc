import { readFile } from 'node:fs/promises';
import { ConfigError, messageOf } from '@switchyard/core';
import { type DecodedFile, decodeFile } from './decode-file.ts';
import type { ConfigFiles } from './effective.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import type { Schema } from './schema/field.ts';
import { kubeProxySchema } from './schema/kube-proxy-fields.ts';
import { switchyardSchema } from './schema/switchyard-fields.ts';

/** Files as decoded, and their texts by path. */
export interface ReadFiles {
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
