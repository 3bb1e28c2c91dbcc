import type { BpfAbilityName, BpfProbe } from '@switchyard/native';

/** An ability of the kernel, and what an operator is told where it is missing. */
export type Need = readonly [ability: BpfAbilityName, text: string];

/** Which of these the kernel lacks, in words, with what it said. */
export function missingAbilities(needs: readonly Need[], { abilities }: BpfProbe): readonly string[] {
  return needs.flatMap(([name, text]) => {
    const ability = abilities[name];
    return ability.status === 'usable' ? [] : [`the kernel lacks ${text} (${ability.reason})`];
  });
}
