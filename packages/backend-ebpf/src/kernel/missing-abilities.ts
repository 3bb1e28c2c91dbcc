import type { BpfAbilityName, BpfProbe } from '@switchyard/native';

/** An ability of the kernel, and its description for operators. */
export type Need = readonly [ability: BpfAbilityName, text: string];

/** Descriptions of the abilities that the kernel lacks, with its errors. */
export function missingAbilities(needs: readonly Need[], { abilities }: BpfProbe): readonly string[] {
  return needs.flatMap(([name, text]) => {
    const ability = abilities[name];
    return ability.status === 'usable' ? [] : [`the kernel lacks ${text} (${ability.reason})`];
  });
}
