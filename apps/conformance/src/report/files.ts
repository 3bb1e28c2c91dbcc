import { ConfigError, messageOf } from '@switchyard/core';

/** Access to files. */
export interface FileIo {
  readonly readText: (file: string) => Promise<string>;
  readonly writeText: (file: string, text: string) => Promise<void>;
}

/** Reads a file. Rejects with `ConfigError` that names it. */
export async function readFileText({ readText }: Pick<FileIo, 'readText'>, file: string): Promise<string> {
  try {
    return await readText(file);
  } catch (cause) {
    throw new ConfigError('report.read', `reading ${file}: ${messageOf(cause)}`, { cause });
  }
}

/** Writes a file. Rejects with `ConfigError` that names it. */
export async function writeFileText(
  { writeText }: Pick<FileIo, 'writeText'>,
  file: string,
  text: string,
): Promise<void> {
  try {
    await writeText(file, text);
  } catch (cause) {
    throw new ConfigError('report.write', `writing ${file}: ${messageOf(cause)}`, { cause });
  }
}
