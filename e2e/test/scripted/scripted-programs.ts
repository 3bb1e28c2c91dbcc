import { appendFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
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
  /** Runs programs with that PATH. Answers for scripted programs in this process; only effects start a shell. */
  readonly runner: CommandRunner;
  /** Expects one more call, which wins over all that were expected before. */
  expect(call: ScriptedCall): void;
  /** Writes the expected calls to `bin`, for processes that a test starts without `runner`. */
  install(): Promise<void>;
  /** All calls until now, in order. */
  calls(): Promise<readonly string[]>;
  /** Unexpected calls; their programs ended with 97. */
  unexpected(): Promise<readonly string[]>;
}

const player = `#!/bin/sh
here=\${0%/*}/.. call="\${0##*/} $*"
printf '%s\\n' "$call" >>"$here/calls"
. "$here/rules"
printf '%s\\n' "$call" >>"$here/unexpected"
echo "scripted \${0##*/}: unexpected call: $call" >&2
exit 97
`;

/** A program that is played needs no process; a shell script plays it for other programs. Calls that are expected later win. */
export async function scriptPrograms(
  folder: string,
  names: readonly string[],
  calls: readonly ScriptedCall[],
): Promise<ScriptedPrograms> {
  const bin = join(folder, 'bin');
  await mkdir(bin, { recursive: true });
  for (const name of names) await writeFile(join(bin, name), player, { mode: 0o755 });
  const rules: Rule[] = [];
  let installed = 0;
  const programs: ScriptedPrograms = {
    bin,
    here: folder,
    runner: scriptedRunner(folder, {
      ruleOf: (call) => rules.findLast(({ pattern }) => pattern.test(call)),
      isScripted: (name) => names.includes(name),
      install: () => programs.install(),
    }),
    expect: (call) => void rules.push(ruleFor(call)),
    install: async () => {
      if (installed === rules.length) return;
      installed = rules.length;
      const branches = rules.toReversed().map(shellBranch).join('');
      await writeFile(join(folder, 'rules'), `case "$call" in\n${branches}esac\n`);
    },
    calls: () => lines(join(folder, 'calls')),
    unexpected: () => lines(join(folder, 'unexpected')),
  };
  for (const call of calls) programs.expect(call);
  return programs;
}

interface Rule extends Required<Omit<ScriptedCall, 'effect'>> {
  readonly effect: string | undefined;
  readonly pattern: RegExp;
}

function ruleFor({ call, stdout = '', stderr = '', exitCode = 0, effect }: ScriptedCall): Rule {
  if (/[?[\]\\]/.test(call)) throw new Error(`only * has a meaning in the pattern of a scripted call: ${call}`);
  const pattern = new RegExp(`^${call.split('*').map(RegExp.escape).join('[^]*')}$`);
  return { call, stdout, stderr, exitCode, effect, pattern };
}

/** The rule as a branch of the shell's `case "$call"`. */
function shellBranch({ call, stdout, stderr, exitCode, effect = ':' }: Rule): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const pattern = call.split('*').map(quoted).join('*');
  return `${pattern})\n${effect}\nprintf %s ${quoted(stdout)}\nprintf %s ${quoted(stderr)} >&2\nexit ${exitCode} ;;\n`;
}

interface Script {
  ruleOf(call: string): Rule | undefined;
  isScripted(name: string): boolean;
  install(): Promise<void>;
}

/** Exit status of the shell when an effect has not ended it. */
const effectDone = 98;

function scriptedRunner(here: string, script: Script): CommandRunner {
  const real = createCommandRunner();
  const path = `${join(here, 'bin')}:/usr/local/bin:/usr/bin:/bin`;
  return {
    run: async (file, args, options) => {
      const withPath = { ...options, env: { ...options.env, PATH: path } };
      if (!script.isScripted(file)) {
        await script.install();
        return real.run(file, args, withPath);
      }
      options.signal.throwIfAborted();
      const call = [file, ...args].join(' ');
      appendFileSync(join(here, 'calls'), `${call}\n`);
      const rule = script.ruleOf(call);
      if (rule === undefined) {
        appendFileSync(join(here, 'unexpected'), `${call}\n`);
        return { exitCode: 97, stdout: '', stderr: `scripted ${file}: unexpected call: ${call}\n` };
      }
      const { effect, stdout, stderr, exitCode } = rule;
      let before = '';
      if (effect !== undefined) {
        const text = `here=$0 call=$1\nshift\n${effect}\nexit ${effectDone}`;
        const ended = await real.run('sh', ['-c', text, here, call, ...args], withPath);
        if (ended.exitCode !== effectDone) return ended;
        before = ended.stdout;
      }
      if (options.onStdout === undefined) return { exitCode, stdout: before + stdout, stderr };
      if (stdout !== '') options.onStdout(stdout);
      return { exitCode, stdout: '', stderr };
    },
  };
}

async function lines(file: string): Promise<readonly string[]> {
  return (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
}
