import type { ChainRule, RuleText } from '../../render/chains.ts';

/**
 * Those entries that answer on an address and port where nothing is wanted any more, in whatever chain. What is only to be
 * answered in another way is not lost.
 */
export function lostEntries(had: readonly ChainRule[], wanted: readonly ChainRule[]): readonly ChainRule[] {
  const places = new Set(wanted.map(({ rule }) => placeOf(rule)));
  return had.filter(({ rule }) => {
    const place = placeOf(rule);
    return place !== undefined && !places.has(place);
  });
}

/** Address (none: any), protocol and port that a rule asks for; undefined when it does not ask for a port. */
function placeOf(rule: RuleText): string | undefined {
  const port = / --dport (\d+) /.exec(rule)?.[1];
  if (port === undefined) return undefined;
  const [address = '', protocol = ''] = [/^-d (\S+) /.exec(rule)?.[1], /(?:^| )-p (\S+) /.exec(rule)?.[1]];
  return `${address} ${protocol} ${port}`;
}
