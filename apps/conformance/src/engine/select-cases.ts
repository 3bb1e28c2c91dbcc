import { UsageError } from '@switchyard/core';
import { dataplaneNamed, type ParsedScenario, scenariosOf } from '@switchyard/scenarios';
import { catalogue, isInCell } from '../cases/catalogue.ts';
import { scenarioCase } from '../cases/scenario-cases.ts';
import type { CatalogueOptions, ConformanceCase } from '../model/case.ts';

/** Selection of cases, with scenarios of the user. */
export interface Selection extends Choice {
  readonly scenarios: readonly ParsedScenario[];
}

/**
 * The cases to run: those of the user's scenarios, then those of the catalogue that globs and tags choose. Without globs and tags the
 * user's scenarios run alone. One with the id of a case of the catalogue takes its place. Throws `ConfigError` for an address outside
 * the address plan, and `UsageError` if nothing is left to run.
 */
export function selectCases(options: CatalogueOptions, selection: Selection): readonly ConformanceCase[] {
  const { scenarios, globs, tags } = selection;
  if (scenarios.length === 0) return chooseCases(catalogue(options), selection);
  const dataplane = dataplaneNamed(options.dataplane);
  const own = scenarios.flatMap((one) => {
    const cases = scenariosOf(one, dataplane).map((scenario) => scenarioCase(scenario));
    const inCell = cases.filter(({ families }) => options.hasAllFamilies === true || isInCell(families, options.cell));
    if (inCell.length > 0) return inCell;
    throw new UsageError(
      'conformance.scenario',
      `the scenario ${one.id} has no case for --ip-family ${options.cell}: it is for ${cases.map(({ families }) => families).join()}`,
    );
  });
  if (globs.length === 0 && tags.length === 0) return own;
  const ids = new Set(own.map(({ id }) => id));
  return [...own, ...chooseCases(catalogue(options), selection).filter(({ id }) => !ids.has(id))];
}

export interface Choice {
  /** Empty: all. `*` stops at a slash, `**` does not, `?` is one letter, `{a,b}` is a or b. A case is wanted when one glob matches its id. */
  readonly globs: readonly string[];
  /** A case needs one of these; `!slow` excludes those that have it. Empty: all. */
  readonly tags: readonly string[];
}

/** The cases that are wanted, in their order. Throws `UsageError` for a glob or a tag that no case has, and for an empty result: probably a typing mistake. */
export function chooseCases(all: readonly ConformanceCase[], { globs, tags }: Choice): readonly ConformanceCase[] {
  const patterns = globs.map((glob) => ({ glob, pattern: globPattern(glob) }));
  for (const { glob, pattern } of patterns) {
    if (all.some(({ id }) => pattern.test(id))) continue;
    throw new UsageError(
      'conformance.case',
      `no case is called ${glob} in this mode with these IP families; the ids are what \`list\` prints, * stops at a slash, ** does not`,
    );
  }
  const excluded = tags.filter((tag) => tag.startsWith('!')).map((tag) => tag.slice(1));
  const wanted = tags.filter((tag) => !tag.startsWith('!'));
  for (const tag of [...excluded, ...wanted]) {
    if (all.some((one) => one.tags.includes(tag))) continue;
    const known = [...new Set(all.flatMap((one) => one.tags))].sort();
    throw new UsageError('conformance.tag', `no case has the tag ${tag}; there are ${known.join(', ')}`);
  }
  const chosen = all.filter(
    (one) =>
      (patterns.length === 0 || patterns.some(({ pattern }) => pattern.test(one.id))) &&
      (wanted.length === 0 || wanted.some((tag) => one.tags.includes(tag))) &&
      !excluded.some((tag) => one.tags.includes(tag)),
  );
  if (chosen.length > 0) return chosen;
  throw new UsageError(
    'conformance.choice',
    'no case matches all of --case and --tag together; each one alone matches some',
  );
}

/** A pattern for whole ids: `*` stops at a slash, `**` does not, `?` is one letter, `{a,b}` is one of these. */
export function globPattern(glob: string): RegExp {
  let depth = 0;
  const parts = glob.split(/(\*\*|[*?{},])/).map((part) => {
    switch (part) {
      case '**':
        return '.*';
      case '*':
        return '[^/]*';
      case '?':
        return '[^/]';
      case '{':
        depth++;
        return '(?:';
      case '}':
        depth--;
        return ')';
      case ',':
        return depth > 0 ? '|' : ',';
      default:
        return part.replaceAll(/[.+^$()|[\]\\]/g, String.raw`\$&`);
    }
  });
  if (depth !== 0) throw new UsageError('conformance.glob', `${glob}: a brace is not closed`);
  return new RegExp(`^${parts.join('')}$`);
}
