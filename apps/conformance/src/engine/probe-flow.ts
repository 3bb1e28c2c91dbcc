import type { Seen } from '../model/bed.ts';
import type { Expectation, Observation } from '@switchyard/scenarios';

/** What many attempts showed: an observation, or a text when they do not fit into one. */
export type FlowSeen =
  | { readonly status: 'observed'; readonly observation: Observation; readonly attempts: number }
  | { readonly status: 'mixed'; readonly text: string; readonly attempts: number };

/** Makes some attempts of a flow side by side. */
export type Attempts = (count: number) => Promise<readonly Seen[]>;

/**
 * Makes as many attempts as it takes to tell whether exactly the expected thing happens: for a set of n endpoints 4n + 4 at
 * least, so that a wrong one hardly escapes, and until all were seen, but 12n + 20 at most. The first wrong answer ends it.
 */
export async function probeFlow(expect: Expectation, attempt: Attempts): Promise<FlowSeen> {
  if (expect.kind !== 'forward') {
    const seen = await attempt(expect.kind === 'drop' ? 3 : 2);
    return conclude(seen, expect);
  }
  const count = expect.to.length;
  const seen: Seen[] = [...(await attempt(4 * count + 4))];
  while (seen.every((one) => isExpected(one, expect)) && seen.length < 12 * count + 20) {
    if (expect.to.every(({ address }) => seen.some((one) => one.kind === 'endpoint' && one.address === address))) break;
    seen.push(...(await attempt(count + 2)));
  }
  return conclude(seen, expect);
}

/** Whether one answer alone fits an expectation. */
export function isExpected(seen: Seen, expect: Expectation): boolean {
  switch (expect.kind) {
    case 'forward':
      return (
        seen.kind === 'endpoint' &&
        expect.to.some(({ address, port }) => address === seen.address && (port ?? seen.port) === seen.port) &&
        seen.isMasqueraded === (seen.isSender ? expect.isHairpinMasqueraded : expect.masquerade)
      );
    case 'reject':
      return seen.kind === 'refused';
    case 'drop':
      return seen.kind === 'timeout';
    case 'pass':
      return seen.kind !== 'endpoint';
  }
}

function conclude(seen: readonly Seen[], expect: Expectation): FlowSeen {
  const attempts = seen.length;
  const observation = observationOf(seen, expect);
  return observation === undefined
    ? { status: 'mixed', text: countTexts(seen), attempts }
    : { status: 'observed', observation, attempts };
}

function observationOf(seen: readonly Seen[], expect: Expectation): Observation | undefined {
  if (seen.every(({ kind }) => kind !== 'endpoint') && expect.kind === 'pass') return { kind: 'pass' };
  if (seen.every(({ kind }) => kind === 'refused')) return { kind: 'reject' };
  if (seen.every(({ kind }) => kind === 'timeout')) return { kind: 'drop' };
  const endpoints = seen.filter((one) => one.kind === 'endpoint');
  if (endpoints.length < seen.length) return undefined;
  const hairpin = expect.kind !== 'forward' || expect.isHairpinMasqueraded;
  if (endpoints.some(({ isSender, isMasqueraded }) => isSender && isMasqueraded !== hairpin)) return undefined;
  const others = endpoints.filter(({ isSender }) => !isSender);
  const masquerade = others[0]?.isMasqueraded ?? hairpin;
  if (others.some(({ isMasqueraded }) => isMasqueraded !== masquerade)) return undefined;
  return { kind: 'forward', to: endpoints, masquerade };
}

/** For example `5 x 10.244.1.5:8080, 1 x timeout`. */
function countTexts(seen: readonly Seen[]): string {
  const counts = Map.groupBy(seen.map(seenText), (text) => text);
  return [...counts].map(([text, all]) => `${all.length} x ${text}`).join(', ');
}

/** One answer as a reader would say it. */
export function seenText(seen: Seen): string {
  if (seen.kind === 'other') return seen.text;
  if (seen.kind !== 'endpoint') return seen.kind;
  return `${seen.address} port ${seen.port}${seen.isMasqueraded ? ' masqueraded' : ''}`;
}
