import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Behaviour of the fake program when its arguments, joined by spaces, match `when`. */
export interface FakeAnswer {
  /** A pattern of the shell, such as `container inspect *`. */
  readonly when: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
  /** Seconds it takes before it ends, after it wrote what it writes. */
  readonly lasts?: number;
  /** Whether it waits for `release` before it writes anything. */
  readonly isHeld?: boolean;
  /** How often it answers so; then the next answer that matches is given. Unless said: always. */
  readonly times?: number;
}

/** A program in the place of docker, podman or nerdctl. The first answer that matches is given; none is a failure. */
export class FakeEngine implements Disposable {
  readonly program: string;
  readonly #folder: string;

  constructor(answers: readonly FakeAnswer[], name: 'docker' | 'podman' | 'nerdctl' = 'docker') {
    this.#folder = mkdtempSync(join(tmpdir(), 'swy-fake-engine-'));
    this.program = join(this.#folder, name);
    const cases = answers.map((answer, index) => this.#write(answer, index));
    writeFileSync(this.program, `#!/bin/sh\necho "$*" >>'${this.#folder}/calls'\n${cases.join('')}${otherwise}`);
    chmodSync(this.program, 0o755);
  }

  /** The arguments of every call so far, in order. */
  get calls(): readonly string[] {
    return this.#read('calls').split('\n').slice(0, -1);
  }

  /** Standard input of the last call of `exec`. */
  get stdin(): string {
    return this.#read('stdin');
  }

  /** Lets answers go on that are held. */
  release(): void {
    writeFileSync(`${this.#folder}/released`, '');
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(
    { when, stdout = '', stderr = '', exitCode = 0, lasts = 0, isHeld = false, times }: FakeAnswer,
    index: number,
  ): string {
    const path = `${this.#folder}/${index}`;
    writeFileSync(`${path}.out`, stdout);
    writeFileSync(`${path}.err`, stderr);
    const pattern = when
      .split('*')
      .map((part) => (part === '' ? '' : `'${part}'`))
      .join('*');
    const isLeft = times === undefined ? 'true' : `[ "$(wc -l <'${path}.used')" -lt ${times} ]`;
    writeFileSync(`${path}.used`, '');
    return `case "$*" in ${pattern}) if ${isLeft}; then
  echo >>'${path}.used'
  case "$1" in exec) cat >'${this.#folder}/stdin' ;; esac
  ${isHeld ? `until [ -e '${this.#folder}/released' ]; do sleep 0.02; done` : ''}
  cat '${path}.out'; cat '${path}.err' >&2
  [ ${lasts} = 0 ] || exec sleep ${lasts}
  exit ${exitCode}
fi ;; esac
`;
  }

  #read(name: string): string {
    const path = join(this.#folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }
}

const otherwise = 'echo "the fake engine has no answer to: $*" >&2\nexit 99\n';
