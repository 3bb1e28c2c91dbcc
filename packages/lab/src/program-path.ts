import { fileURLToPath } from 'node:url';

/**
 * Returns Node arguments that run `programs/<name>` of this package: the source if this file runs from source, otherwise the
 * compiled file. The programs import nothing outside this package, so that they start fast.
 */
export function nodeProgram(name: string): readonly string[] {
  const isSource = import.meta.url.endsWith('.ts');
  const file = fileURLToPath(new URL(`./programs/${name}.${isSource ? 'ts' : 'js'}`, import.meta.url));
  return [...(isSource ? ['--conditions=@switchyard/source', '--disable-warning=ExperimentalWarning'] : []), file];
}
