import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { HostError } from '@switchyard/core';

/** A tool of this checkout to run, as a developer would. */
export interface ToolRun {
  /** Below `tools`, for example `debian/fetch.ts`. */
  readonly tool: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a tool and returns its standard output; its stderr goes to this process's stderr. Rejects when it fails. */
export async function runTool({ tool, args, env = {} }: ToolRun, signal: AbortSignal): Promise<string> {
  const path = fileURLToPath(new URL(`../../../../tools/${tool}`, import.meta.url));
  const child = spawn(process.execPath, ['--conditions=@switchyard/source', path, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const abort = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', abort, { once: true });
  try {
    const [printed, [code, killedBy]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    signal.throwIfAborted();
    if (code === 0) return printed.trim();
    throw new HostError('rollout.tool', `tools/${tool} ended with ${code ?? killedBy}; what it said is above`);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
