import { join } from 'node:path';
import { runProgram } from './run-program.ts';

/** Where Go builds, and with which packages. */
export interface GoOptions {
  readonly cwd?: string;
  readonly gopath: string;
  /** Go's own cache. */
  readonly cache: string;
  readonly signal: AbortSignal;
}

/** Runs the Go that is unpacked in `debian`, without modules, which Debian's source packages do not have, and without a C compiler. */
export async function runGo(debian: string, args: readonly string[], options: GoOptions): Promise<void> {
  const { gopath, cache, ...run } = options;
  const env = {
    GOROOT: join(debian, 'usr/lib/go'),
    GOPATH: gopath,
    GO111MODULE: 'off',
    GOCACHE: cache,
    GOFLAGS: '',
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
  };
  await runProgram(join(debian, 'usr/bin/go'), args, { env, ...run });
}
