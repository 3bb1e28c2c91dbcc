import { parseSync } from 'oxc-parser';

/** One import of a source, or an export from another module. */
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
