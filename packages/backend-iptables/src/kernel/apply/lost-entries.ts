import type { ChainRule, RuleText } from '../../render/chains.ts';

/**
 * Entries of all chains whose address and port no wanted entry has. An entry whose address and port stay wanted with another
 * answer is not lost.
 */
export function lostEntries(had: readonly ChainRule[], wanted: readonly ChainRule[]): readonly ChainRule[] {
  const places = new Set(wanted.map(({ rule }) => placeOf(rule)));
  return had.filter(({ rule }) => {
    const place = placeOf(rule);
    return place !== undefined && !places.has(place);
  });
}

/** Address (empty: any), protocol and port that a rule matches; undefined when it matches no port. */
function placeOf(rule: RuleText): string | undefined {
  const port = / --dport (\d+) /.exec(rule)?.[1];
  if (port === undefined) return undefined;
  const [address = '', protocol = ''] = [/^-d (\S+) /.exec(rule)?.[1], /(?:^| )-p (\S+) /.exec(rule)?.[1]];
  return `${address} ${protocol} ${port}`;
}
