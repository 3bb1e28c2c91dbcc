import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { root } from '../workspace.ts';

/** A TypeScript source with comments and string bodies taken out, so that words in them are not code. */
export interface SourceFile {
  /** Relative to the checkout. */
  readonly path: string;
  /** Without comments; strings kept (imports are read from here). */
  readonly code: string;
  /** Without comments and with string contents emptied. */
  readonly bare: string;
}

/** All sources below a folder; tests and benches included. Another checkout than this one is for tests. */
export function sourceFiles(folder: string, checkout: string = root): readonly SourceFile[] {
  return globSync(`${folder}/**/*.ts`, {
    cwd: checkout,
    exclude: ['**/node_modules/**', '**/dist/**', '**/dist-bundle/**'],
  })
    .sort()
    .map((path) => parseSource(path, readFileSync(join(checkout, path), 'utf8')));
}

const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;

/** Splits a text into code and comments. Exported for tests. */
export function parseSource(path: string, text: string): SourceFile {
  const isComment = (part: string): boolean => part.startsWith('//') || part.startsWith('/*');
  const blank = (part: string): string => part.replace(/[^\n]/g, ' '); // keeps offsets and line numbers
  return {
    path,
    code: text.replace(token, (part) => (isComment(part) ? blank(part) : part)),
    bare: text.replace(token, (part) =>
      isComment(part) ? blank(part) : `${part[0]}${blank(part.slice(1, -1))}${part[0]}`,
    ),
  };
}

export interface Import {
  /** The module as the source spells it. */
  readonly specifier: string;
  /** Types carry no code: the table's vocabulary may be named by the policy that fills it. */
  readonly isTypeOnly: boolean;
}

/** Returns what a TypeScript source imports, statically and at run time. A module's name that is computed is left out. */
export function importsOf(code: string): readonly Import[] {
  const { staticImports, staticExports, dynamicImports } = parseSync('source.ts', code).module;
  // `import { type A }` is still an import at run time.
  const isTypeOnly = ({ start }: { readonly start: number }): boolean =>
    /^(?:import|export)\s+type\b/.test(code.slice(start, start + 100));
  return [
    ...staticImports.map((one) => ({ specifier: one.moduleRequest.value, isTypeOnly: isTypeOnly(one) })),
    ...staticExports.flatMap((one) => {
      const specifier = one.entries[0]?.moduleRequest?.value;
      return specifier === undefined ? [] : [{ specifier, isTypeOnly: isTypeOnly(one) }];
    }),
    ...dynamicImports.flatMap(({ moduleRequest: { start, end } }) => {
      const specifier = /^(['"])(.*)\1$/.exec(code.slice(start, end))?.[2];
      return specifier === undefined ? [] : [{ specifier, isTypeOnly: false }];
    }),
  ];
}
