import { type Clock, type IpFamily, ipFamilies } from '@switchyard/core';
import type { Ability, CatalogueOptions, SequenceCase } from '../../../model/case.ts';
import { SequenceContext } from './sequence-context.ts';

/** Definition of a sequence, for all families and dataplanes. */
export interface Sequence {
  /** Middle part of the case's id. */
  readonly name: string;
  readonly title: string;
  readonly why: string;
  /** Tags after `sequence`. */
  readonly tags: readonly string[];
  readonly needs: readonly Ability[];
  /** `each`: once per family. `dual`: once, in a cluster with both. Default `each`. */
  readonly families?: 'each' | 'dual';
  run(context: SequenceContext): Promise<void>;
}

/** Returns the cases of a sequence: one per family, or one for both. */
export function casesOf(
  sequence: Sequence,
  { dataplane }: Pick<CatalogueOptions, 'dataplane'>,
  clock: Clock,
): readonly SequenceCase[] {
  const { name, title, why, tags, needs } = sequence;
  const isDualStack = sequence.families === 'dual';
  const one = (ipFamily: IpFamily): SequenceCase => {
    const id = `sequence/${name}/${isDualStack ? 'dual' : ipFamily.toLowerCase()}`;
    return {
      kind: 'sequence',
      id,
      title,
      why,
      tags: ['sequence', ...tags],
      families: isDualStack ? 'dual' : ipFamily,
      needs,
      notFor: undefined,
      run: (environment, record, signal) => {
        const about = { id, title, why, ipFamily, isDualStack, dataplane };
        return sequence.run(new SequenceContext({ about, environment, record, clock, signal }));
      },
    };
  };
  return isDualStack ? [one('IPv4')] : ipFamilies.map(one);
}
