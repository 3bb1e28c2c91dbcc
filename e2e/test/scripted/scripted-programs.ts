import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCommandRunner, type CommandRunner } from '@switchyard/host';

/** A call that a program is to expect, and how it answers. */
export interface ScriptedCall {
  /** `kind create cluster --name * *`: the program and its arguments with blanks between, as a glob of the shell. */
  readonly call: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
  /** Shell text that is run before the answer; `$1`... are the call's arguments, `$here` is the script's folder, `$call` the call. */
  readonly effect?: string;
}

/** Programs on a PATH of their own, which play a script. */
export interface ScriptedPrograms {
  /** The folder that stands first in the PATH. */
  readonly bin: string;
  /** Folder that effects know as `$here`. */
  readonly here: string;
  /** Runs programs with that PATH. */
  readonly runner: CommandRunner;
  /** Expects one more call, which wins over all that were expected before. */
  expect(call: ScriptedCall): Promise<void>;
  /** All calls until now, in order. */
  calls(): Promise<readonly string[]>;
  /** Unexpected calls; their programs ended with 97. */
  unexpected(): Promise<readonly string[]>;
}

const player = `#!/bin/sh
name=\${0##*/} here=\${0%/*}/..
call="$name $*"
printf '%s\\n' "$call" >>"$here/calls"
for rule in "$here"/rules/*; do
  read -r pattern <"$rule/call"
  case "$call" in $pattern)
    . "$rule/effect"
    [ ! -s "$rule/stdout" ] || cat "$rule/stdout"
    [ ! -s "$rule/stderr" ] || cat "$rule/stderr" >&2
    read -r code <"$rule/exit"
    exit "$code" ;;
  esac
done
printf '%s\\n' "$call" >>"$here/unexpected"
echo "scripted $name: nobody expected: $call" >&2
exit 97
`;

/** Installs the programs into a folder. Calls that are expected later win over those before them. */
export async function scriptPrograms(
  folder: string,
  names: readonly string[],
  calls: readonly ScriptedCall[],
): Promise<ScriptedPrograms> {
  const bin = join(folder, 'bin');
  await mkdir(bin, { recursive: true });
  for (const name of names) {
    await writeFile(join(bin, name), player);
    await chmod(join(bin, name), 0o755);
  }
  const real = createCommandRunner();
  const path = `${bin}:/usr/local/bin:/usr/bin:/bin`;
  // The shell reads rules in the order of their names: the newest has the lowest number.
  let number = 99_999;
  const programs: ScriptedPrograms = {
    bin,
    here: folder,
    runner: { run: (file, args, options) => real.run(file, args, { ...options, env: { ...options.env, PATH: path } }) },
    expect: async ({ call, stdout = '', stderr = '', exitCode = 0, effect = ':' }) => {
      const rule = join(folder, 'rules', String((number -= 1)));
      await mkdir(rule, { recursive: true });
      const files = { call, stdout, stderr, exit: String(exitCode), effect };
      for (const [name, text] of Object.entries(files)) {
        await writeFile(join(rule, name), name === 'stdout' || name === 'stderr' ? text : `${text}\n`);
      }
    },
    calls: () => lines(join(folder, 'calls')),
    unexpected: () => lines(join(folder, 'unexpected')),
  };
  await rm(join(folder, 'rules'), { recursive: true, force: true });
  for (const call of calls) await programs.expect(call);
  return programs;
}

async function lines(file: string): Promise<readonly string[]> {
  return (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
}
