import type { CaseInfo, CatalogueOptions, ConformanceCase, FamilyCell } from '../model/case.ts';
import { matrixCases, scenarioCases } from './scenario-cases.ts';
import { straySegments } from './packets/stray-segments.ts';
import { rolloutCases } from './rollouts/run-rollout-case.ts';
import { casesOf } from './sequences/support/sequence-context.ts';
import { sequenceCases } from './sequences/index.ts';

const strayCases = (options: CatalogueOptions): readonly ConformanceCase[] => casesOf(straySegments, options);

/**
 * Every case there is for a dataplane in a cluster with these families, also those that are not for this dataplane (they
 * say why). Scenario files first, then the matrix, sequences and rolling updates; ids are unique.
 */
export function catalogue(options: CatalogueOptions): readonly ConformanceCase[] {
  const all = [scenarioCases, matrixCases, sequenceCases, strayCases, rolloutCases].flatMap<ConformanceCase>((cases) =>
    cases(options),
  );
  return options.hasAllFamilies === true ? all : all.filter(({ families }) => isInCell(families, options.cell));
}

/** Whether a cluster with these families has what a case needs. */
export function isInCell(families: CaseInfo['families'], cell: FamilyCell): boolean {
  if (cell === 'dual') return true;
  return families === (cell === 'ipv4' ? 'IPv4' : 'IPv6');
}
