import type { Meaning } from '../../../src/config/schema/field.ts';

/** A meaning as a cell. */
export function meaningText(meaning: Meaning): string {
  switch (meaning.kind) {
    case 'same':
      return 'same';
    case 'better':
      return `**better**: ${meaning.how}`;
    case 'different':
      return `**different**: ${meaning.how}`;
    case 'ignored':
      return `ignored: ${meaning.why}`;
    case 'refused':
      return `**partly refused**: ${meaning.why}`;
  }
}

/** How many of each kind. */
function countKinds(meanings: readonly Meaning[]): Readonly<Record<Meaning['kind'], number>> {
  const count = (kind: Meaning['kind']): number => meanings.filter((meaning) => meaning.kind === kind).length;
  return {
    same: count('same'),
    better: count('better'),
    different: count('different'),
    ignored: count('ignored'),
    refused: count('refused'),
  };
}

/** How many of each kind, as a sentence part; kinds without any are left out. */
export function countText(meanings: readonly Meaning[]): string {
  const { same, better, different, ignored, refused } = countKinds(meanings);
  const parts = [
    [same, 'same'],
    [better, 'better'],
    [different, 'different'],
    [ignored, 'accepted without effect'],
    [refused, 'with values that are refused'],
  ] as const;
  const counted = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `${meanings.length} in all: ${counted.join(', ')}`;
}
