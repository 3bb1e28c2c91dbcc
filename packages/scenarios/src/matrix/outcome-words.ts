import type { SourceClass } from '@switchyard/core';
import type { MatrixOutcome } from './matrix-rules.ts';

const senders: Readonly<Record<SourceClass, string>> = { pod: 'a pod', node: 'the node', outside: 'a client outside' };

/** Describes the outcome of each sender, equal outcomes together: `a pod and the node reach the one elsewhere; a client outside gets no answer`. */
export function outcomesInWords(outcomes: ReadonlyMap<SourceClass, MatrixOutcome>): string {
  const byFate = Map.groupBy(outcomes, ([, outcome]) => fateOf(outcome));
  return [...byFate]
    .map(([fate, members]) => `${listed(members.map(([from]) => senders[from]))} ${verb(fate, members.length)}`)
    .join('; ');
}

function fateOf(outcome: MatrixOutcome): string {
  switch (outcome.kind) {
    case 'forward': {
      const places = new Set(outcome.to.map(({ node }) => (node === 'node1' ? 'here' : 'elsewhere')));
      return `reach ${places.size === 2 ? 'both' : `the one ${[...places].join('')}`}`;
    }
    case 'drop':
      return 'get no answer';
    case 'reject':
      return 'are refused';
    case 'pass':
      return 'are left to routing';
  }
}

function verb(fate: string, count: number): string {
  if (count > 1) return fate;
  return fate
    .replace(/^reach/, 'reaches')
    .replace(/^get/, 'gets')
    .replace(/^are/, 'is');
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
