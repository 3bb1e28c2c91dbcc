import { type Logger, HostError, messageOf } from '@switchyard/core';
import { version } from '../version.ts';
import { toDocument, type Plain, type PlainObject } from './documents.ts';
import { kubernetesRelease } from './kubernetes-version.ts';
import type { Config } from './run-config.ts';
import { appendFile, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

/** `--write-config-to`: kube-proxy's part of the configuration, complete, as YAML. Rejects with `HostError`. */
export async function writeConfig(config: Extract<Config, { readonly kind: 'write' }>, logger: Logger): Promise<void> {
  await writeWhole(config.file, toYaml(toDocument(config.settings)));
  logger.info('wrote configuration', { file: config.file });
}

/** `--version`: one line, or with `raw` all details as JSON. */
export function versionText(form: 'line' | 'raw'): string {
  if (form === 'line') return `switchyard-agent ${version}\n`;
  const { version: node, platform, arch } = process;
  return `${JSON.stringify({ version, kubeProxy: kubernetesRelease, node, platform, arch })}\n`;
}

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

/**
 * Writes a file atomically: a reader sees the old text or the new one, also when the disk is full or the machine stops.
 * Appends to files that are not regular, such as /dev/stdout. Rejects with `HostError`; the old file is then unchanged.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  try {
    if (await isSpecial(file)) await appendFile(file, text);
    else await replaceFile(await realpath(file).catch(() => file), text); // the file a link points to, not the link
  } catch (cause) {
    const reason = messageOf(cause);
    throw new HostError('host.writeFile', `cannot write ${file}: ${reason}; the old file is unchanged`, { cause });
  }
}

/** Also true for a device that leads to a regular file, as /dev/stdout may: the shell owns that file. */
async function isSpecial(file: string): Promise<boolean> {
  if (/^\/(?:dev|proc)\//.test(resolve(file))) return true;
  return stat(file).then(
    (found) => !found.isFile(),
    () => false,
  );
}

async function replaceFile(target: string, text: string): Promise<void> {
  const draft = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
  try {
    await rm(draft, { force: true }); // of a process that was killed
    await using handle = await open(draft, 'wx', 0o644);
    await handle.writeFile(text);
    await handle.sync();
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
