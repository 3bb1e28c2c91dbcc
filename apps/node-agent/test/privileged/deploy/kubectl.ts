import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Result of a command line. */
export interface ShellResult {
  readonly exitCode: number | null;
  /** Both streams, as a terminal shows them. */
  readonly output: string;
}

const fetcher = fileURLToPath(new URL('../../../../../tools/debian/fetch.ts', import.meta.url));
/** Where the commands of the documents are typed. */
export const checkout: string = fileURLToPath(new URL('../../../../..', import.meta.url));

/** Folder of Debian's kubectl, the oldest that the manifests are for. */
export async function debianKubectlFolder(): Promise<string> {
  const args = [fetcher, '--exclude', 'libc6', 'kubernetes-client'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return `${stdout.trim()}/usr/bin`;
}

/** Runs command lines as typed at the checkout's root, or in `cwd`, stopping at the first that fails; 60 s at most. */
export function shell(
  commands: string,
  env: Readonly<Record<string, string>>,
  cwd: string = checkout,
): Promise<ShellResult> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-euc', commands], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    });
    let output = '';
    const collect = (chunk: Buffer): void => void (output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, output }));
  });
}
