import { compareIps, type IpAddress } from '@switchyard/core';
import { type Observation, observationText, type ScenarioFlow } from '@switchyard/scenarios';
import { type ErrorLimits, probeFlow } from '../../../engine/probe-flow.ts';
import type { Dial, Seen } from '../../../model/bed.ts';

/** What some attempts showed, in words that are the same for the same outcome. */
export interface Look {
  readonly observed: string;
  readonly because: readonly string[];
}

/** Makes attempts until it is clear whether exactly the expected thing happens, or cannot become so: then it says why. */
export async function lookAt(
  flow: ScenarioFlow,
  dial: Pick<Dial, 'attempts'>,
  limits?: ErrorLimits,
): Promise<Look | { readonly inconclusive: string }> {
  const all: Seen[] = [];
  const attempts = async (count: number): Promise<readonly Seen[]> => {
    const more = await dial.attempts(count);
    all.push(...more);
    return more;
  };
  const seen = await probeFlow(flow.expect, attempts, limits);
  if (seen.status === 'inconclusive') return { inconclusive: seen.because };
  const observed = seen.status === 'observed' ? observationText(seen.observation, flow) : mixedText(all, flow);
  return { observed, because: [countText(all)] };
}

/** One answer as a reader would say it. */
export function seenText(seen: Seen): string {
  if (seen.kind === 'other') return seen.text;
  if (seen.kind !== 'endpoint') return seen.kind;
  return `${seen.address}${seen.isMasqueraded ? ' masqueraded' : ''}`;
}

/** For example `5 x 10.244.1.5, 1 x timeout`. */
export function countText(seen: readonly Seen[]): string {
  const counts = Map.groupBy(seen.map(seenText), (text) => text);
  return [...counts].map(([text, same]) => `${same.length} x ${text}`).join(', ');
}

/** Each answer once, endpoints first. */
function mixedText(seen: readonly Seen[], flow: ScenarioFlow): string {
  const endpoints = seen.filter((one) => one.kind === 'endpoint').toSorted((a, b) => compareIps(a.address, b.address));
  const others = seen.filter((one) => one.kind !== 'endpoint').map(seenText);
  const isOneKind = new Set(endpoints.map(({ isMasqueraded }) => isMasqueraded)).size === 1;
  const [first] = endpoints;
  const texts =
    first === undefined || !isOneKind
      ? endpoints.map(seenText)
      : [observationText(observationOf(endpoints, first.isMasqueraded), flow)];
  return [...new Set([...texts, ...others.toSorted()])].join(' and ');
}

function observationOf(
  endpoints: readonly { readonly address: IpAddress; readonly port: number }[],
  masquerade: boolean,
): Observation {
  return { kind: 'forward', to: endpoints, masquerade };
}
