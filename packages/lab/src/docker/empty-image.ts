import { existsSync } from 'node:fs';
import { HostError } from '@switchyard/core';
import type { DockerEngine } from './docker-engine.ts';

const tag = 'switchyard/empty:1';

/**
 * Returns the name of an image without files, which needs no registry; creates it if it is missing. Its containers get their
 * programs from `machinePrograms`.
 */
export async function emptyImage(engine: DockerEngine): Promise<string> {
  if ((await engine.cli(['image', 'inspect', tag])).exitCode === 0) return tag;
  const { exitCode, stderr } = await engine.cli(['import', '-', tag], { stdin: '\0'.repeat(1024) });
  if (exitCode === 0) return tag;
  throw new HostError('docker.image', `docker import of an empty image ended with ${exitCode}: ${stderr.trim()}`);
}

/** Options of `docker run` that give a container this machine's programs, read-only, and this process's Node as `/node`. */
export const machinePrograms: readonly string[] = [
  ...['/usr', '/bin', '/lib', '/lib64'].filter((path) => existsSync(path)).map((path) => `${path}:${path}:ro`),
  `${process.execPath}:/node:ro`,
].flatMap((volume) => ['--volume', volume]);
