import type { Seen } from '../model/test-environment.ts';
import type { Expectation, Observation } from '@switchyard/scenarios';

/** Result of many attempts: an observation, or a text if they do not fit one observation. */
export type FlowSeen =
  | { readonly status: 'observed'; readonly observation: Observation; readonly attempts: number }
  | { readonly status: 'mixed'; readonly text: string; readonly attempts: number }
  | { readonly status: 'inconclusive'; readonly because: string; readonly attempts: number };

/** Makes some attempts of a flow side by side. */
export type Attempts = (count: number) => Promise<readonly Seen[]>;

/** The node's rate limits on ICMP errors, which can turn a reject into silence. */
export interface ErrorLimits {
  /** Number of errors suppressed until now; undefined if the node does not report it. */
  heldBack(): Promise<number | undefined>;
  /** Runs work when the limits allow another error to this flow's sender, and no other paced work of that sender at the same time. */
  paced<T>(work: () => Promise<T>): Promise<T>;
}

/** Most paced attempts at one flow: errors of other flows use up the limits too. */
export const mostPaced = 5;

/**
 * Makes as many attempts as needed to decide whether exactly the expected thing happens. For a set of n endpoints: at least 4n + 4, so
 * that a wrong endpoint hardly stays unseen, then until all were seen, at most 12n + 20. The first wrong answer ends it. Silence while
 * `limits` suppressed errors may be a drop or a reject, and is probed again.
 */
export async function probeFlow(expect: Expectation, attempt: Attempts, limits?: ErrorLimits): Promise<FlowSeen> {
  if (expect.kind !== 'forward') return probeRefusal(expect, attempt, limits);
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

/** Probes a flow whose expectation is a reject, a drop or a pass. */
async function probeRefusal(
  expect: Exclude<Expectation, { readonly kind: 'forward' }>,
  attempt: Attempts,
  limits: ErrorLimits | undefined,
): Promise<FlowSeen> {
  const before = await limits?.heldBack();
  const seen = await attempt(expect.kind === 'drop' ? 3 : 2);
  if (limits === undefined || expect.kind === 'pass' || !isSilenceOrRefusal(seen)) return conclude(seen, expect);
  const after = await limits.heldBack();
  const isLimited = before === undefined || after === undefined ? 'unknown' : after > before;
  if (isLimited === false || (isLimited === 'unknown' && expect.kind === 'drop')) return conclude(seen, expect);
  const refused = seen.filter(({ kind }) => kind === 'refused');
  // Errors were suppressed; those that arrived show the verdict of the others.
  if (isLimited === true && refused.length > 0) return { ...conclude(refused, expect), attempts: seen.length };
  return probePaced(expect, seen, { attempt, limits });
}

/** One attempt at a time, each when the limits allow its sender an error. */
async function probePaced(
  expect: Expectation,
  first: readonly Seen[],
  { attempt, limits }: { readonly attempt: Attempts; readonly limits: ErrorLimits },
): Promise<FlowSeen> {
  const seen = [...first];
  let heldBack: number | undefined;
  for (let left = mostPaced; left > 0; left--) {
    const { answer: one, held } = await pacedAttempt(attempt, limits);
    if (one === undefined) break;
    seen.push(one);
    if (one.kind === 'refused') return { ...conclude([one], expect), attempts: seen.length };
    if (one.kind !== 'timeout' || held === 0) return conclude(seen, expect);
    heldBack = held;
  }
  // A node without counters is judged by the pace, at which the limits allow an error for every attempt.
  if (heldBack === undefined) return conclude(seen, expect);
  return { status: 'inconclusive', because: limitedText(seen.length), attempts: seen.length };
}

interface PacedAttempt {
  readonly answer: Seen | undefined;
  /** Errors that were held back meanwhile; undefined where the node does not say. */
  readonly held: number | undefined;
}

function pacedAttempt(attempt: Attempts, limits: ErrorLimits): Promise<PacedAttempt> {
  return limits.paced(async () => {
    const before = await limits.heldBack();
    const [answer] = await attempt(1);
    const after = await limits.heldBack();
    return { answer, held: before === undefined || after === undefined ? undefined : after - before };
  });
}

/** One answer that the node's limits have not made: at the pace that they allow, and again when they held an error back. Undefined: there was none. */
export async function answerAtPace(attempt: Attempts, limits: ErrorLimits): Promise<Seen | undefined> {
  for (let left = mostPaced; left > 0; left--) {
    const { answer, held } = await pacedAttempt(attempt, limits);
    if (answer?.kind !== 'timeout' || held === undefined || held === 0) return answer;
  }
  return undefined;
}

/** The reason of a check whose silence may be a reject. */
export function limitedText(attempts: number): string {
  return (
    `rate limited: ${attempts} attempts were silent, ${mostPaced} of them one by one, and during each the node's limits on ICMP ` +
    'errors held some back (net.ipv4.icmp_ratelimit, net.ipv6.icmp.ratelimit): it may be a reject or a drop'
  );
}

/** Whether some attempts were silent and all others refused: the silence may be suppressed refusals. */
function isSilenceOrRefusal(seen: readonly Seen[]): boolean {
  return (
    seen.some(({ kind }) => kind === 'timeout') && seen.every(({ kind }) => kind === 'timeout' || kind === 'refused')
  );
}

function conclude(seen: readonly Seen[], expect: Expectation): FlowSeen {
  const attempts = seen.length;
  const observation = observationOf(seen, expect);
  return observation === undefined
    ? { status: 'mixed', text: countText(seen, { hasPorts: true }), attempts }
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

/** Whether texts name the port of an endpoint. Default: no. */
export interface SeenTextOptions {
  readonly hasPorts?: boolean;
}

/** Answers with their counts: `5 x 10.244.1.5, 1 x timeout`. */
export function countText(seen: readonly Seen[], options: SeenTextOptions = {}): string {
  const counts = Map.groupBy(seen, (one) => seenText(one, options));
  return [...counts].map(([text, same]) => `${same.length} x ${text}`).join(', ');
}

/** One answer as a reader would say it. */
export function seenText(seen: Seen, { hasPorts = false }: SeenTextOptions = {}): string {
  if (seen.kind === 'other') return seen.text;
  if (seen.kind !== 'endpoint') return seen.kind;
  return `${seen.address}${hasPorts ? ` port ${seen.port}` : ''}${seen.isMasqueraded ? ' masqueraded' : ''}`;
}
