import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { mutatedText } from './apply-mutant.ts';
import type { Mutant } from './mutant.ts';
import type { SuiteResult } from './run-suite.ts';

/** Result of one mutant, or of the unchanged agent. */
export interface MutantResult {
  /** A mutant's id, or `control/BACKEND`. */
  readonly id: string;
  /** `digestOf` what was run: a result of another text, or of other cases, counts no more. */
  readonly digest: string;
  /** How many stages were run. More may follow where it survived them. */
  readonly stages: number;
  /** Results of all stages so far. */
  readonly result: SuiteResult;
}

/** Results so far, in a file, so that a run can go on where another ended. */
export class Results {
  readonly #file: string;
  readonly #byId = new Map<string, MutantResult>();

  private constructor(file: string) {
    this.#file = file;
  }

  static async open(file: string): Promise<Results> {
    const results = new Results(file);
    const text = await readFile(file, 'utf8').catch(() => '[]');
    for (const one of JSON.parse(text) as readonly MutantResult[]) results.#byId.set(one.id, one);
    return results;
  }

  /** Undefined where it is not known, or of another text. */
  get(id: string, digest: string): MutantResult | undefined {
    const found = this.#byId.get(id);
    return found?.digest === digest ? found : undefined;
  }

  async add(one: MutantResult): Promise<void> {
    this.#byId.set(one.id, one);
    await mkdir(dirname(this.#file), { recursive: true });
    await writeFile(`${this.#file}.next`, `${JSON.stringify([...this.#byId.values()], undefined, 2)}\n`);
    await rename(`${this.#file}.next`, this.#file);
  }
}

/** By what a result is known to be of this very text with this backend, and of these cases. */
export async function digestOf(mutant: Mutant | undefined, cases: string | undefined): Promise<string> {
  const mutated = mutant === undefined ? 'as it is' : `${mutant.backend}\n${await mutatedText(mutant)}`;
  const text = `${mutated}\n${cases ?? ''}`;
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
