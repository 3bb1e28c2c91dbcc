import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import type { DockerEngine } from '@switchyard/lab';

/** Lays files out as the kubelet mounts a ConfigMap: links through `..data` to a folder that is replaced as a whole. */
export async function writeConfigMap(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const version = '..2026_01_01_00_00_00.1';
  await mkdir(`${folder}/${version}`, { recursive: true });
  await symlink(version, `${folder}/..data`);
  for (const [name, text] of Object.entries(files)) {
    await writeFile(`${folder}/${version}/${name}`, text);
    await symlink(`..data/${name}`, `${folder}/${name}`);
  }
}

/** How a container ended, and what it wrote to stderr. */
export interface ContainerEnd {
  readonly exitCode: number;
  readonly isOutOfMemory: boolean;
}

/** Stops a container as the kubelet does, SIGTERM to process 1 and SIGKILL after `grace` seconds. */
export async function stopContainer(engine: DockerEngine, name: string, grace: number): Promise<ContainerEnd> {
  await succeed(engine, ['stop', '--time', String(grace), name]);
  const state = await succeed(engine, ['inspect', '--format', '{{.State.ExitCode}} {{.State.OOMKilled}}', name]);
  const [exitCode, isOutOfMemory] = state.trim().split(' ');
  return { exitCode: Number(exitCode), isOutOfMemory: isOutOfMemory === 'true' };
}

/** Runs the Docker CLI and returns its output; a failure throws with what it said. */
export async function succeed(engine: DockerEngine, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.cli(args);
  if (exitCode !== 0) throw new Error(`docker ${args.join(' ')} exited with ${exitCode}: ${stderr}`);
  return stdout;
}

/** Resident memory of a process in MB of 2^20 bytes. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
