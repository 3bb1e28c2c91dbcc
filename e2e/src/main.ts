import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { readInotify } from './obstacles.ts';
import { runProgram } from './program.ts';

// `./dev e2e`. The first ^C or SIGTERM ends what runs and removes its cluster; a second one ends at once.

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    if (stop.signal.aborted) {
      process.stderr.write('e2e: ended at once; ./dev e2e --clean removes what is left\n');
      process.exit(130);
    }
    process.stderr.write(`e2e: ${name}: removing what the cell made; once more to end at once\n`);
    stop.abort(new Error(`stopped by ${name}`));
  });
}

/** Socket for containers to mount: that of the engine that DOCKER_HOST names, if it is on this machine. */
function dockerSocket(host: string = process.env['DOCKER_HOST'] ?? ''): string {
  return host.startsWith('unix://') ? host.slice('unix://'.length) : '/var/run/docker.sock';
}

/** Whether the engine's containers run on this kernel, by DOCKER_HOST. */
function isEngineHere(host: string = process.env['DOCKER_HOST'] ?? ''): boolean {
  return process.platform === 'linux' && (host === '' || host.startsWith('unix://'));
}

try {
  process.exitCode = await runProgram(
    process.argv.slice(2),
    {
      checkout: fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''),
      cwd: process.cwd(),
      runner: createCommandRunner(),
      clock: systemClock,
      machine: {
        platform: process.platform,
        isRoot: process.getuid?.() === 0 && existsSync('/proc/self/ns/net'),
        inotify: isEngineHere() ? await readInotify(process.getuid?.() === 0) : undefined,
      },
      stateFolder: join(tmpdir(), 'switchyard-e2e'),
      network: process.env['KIND_EXPERIMENTAL_DOCKER_NETWORK'] ?? 'kind',
      dockerSocket: dockerSocket(),
      print: (line) => void process.stdout.write(`${line}\n`),
    },
    stop.signal,
  );
} catch (error) {
  const isStopped = stop.signal.aborted && error === stop.signal.reason;
  process.stderr.write(
    `e2e: ${isStopped ? stop.signal.reason.message : error instanceof Error ? error.stack : error}\n`,
  );
  process.exitCode = isStopped ? 130 : 3;
}
