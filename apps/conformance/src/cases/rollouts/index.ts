import type { IpFamily } from '@switchyard/core';
import type { Ability, CatalogueOptions, SequenceCase } from '../../model/case.ts';
import { familiesOfCell } from '../families-of-cell.ts';
import { rolloutId, type RolloutKind, rolloutKinds } from './rollout-kind.ts';
import { runRolloutCase } from './run-rollout-case.ts';

/** Rolling updates under an open loop of requests, of each family that the cell has. */
export function rolloutCases({ cell, dataplane }: CatalogueOptions): readonly SequenceCase[] {
  return familiesOfCell(cell).flatMap((family) => rolloutKinds.map((kind) => rolloutCase(kind, family, dataplane)));
}

function rolloutCase(kind: RolloutKind, family: IpFamily, dataplane: CatalogueOptions['dataplane']): SequenceCase {
  const { title, why, policy } = kind;
  const needs: readonly Ability[] = [
    'controlProxy',
    'sendFromOutside',
    'holdConnections',
    'load',
    'workloads',
    ...(policy === 'Local' ? (['loadBalancer'] as const) : []),
  ];
  return {
    kind: 'sequence',
    id: rolloutId(kind, family),
    title,
    why,
    tags: ['rollout', kind.workload, 'terminating', 'slow'],
    families: family,
    needs,
    notFor: undefined,
    run: (environment, record, signal) => runRolloutCase({ kind, family, dataplane }, { environment, record }, signal),
  };
}
