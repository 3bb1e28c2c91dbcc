import { compareIps } from '@switchyard/core';
import { observationText, type ScenarioFlow } from '@switchyard/scenarios';
import { countText, type ErrorLimits, probeFlow, seenText } from '../../../engine/probe-flow.ts';
import type { FlowConnector, Seen } from '../../../model/test-environment.ts';

/** Result of some attempts, in words that are equal for equal outcomes. */
export interface Look {
  readonly observed: string;
  readonly because: readonly string[];
}

/** Makes attempts until it is clear whether exactly the expected thing happens, or returns why that cannot be decided. */
export async function lookAt(
  flow: ScenarioFlow,
  connector: Pick<FlowConnector, 'attempts'>,
  limits?: ErrorLimits,
): Promise<Look | { readonly inconclusive: string }> {
  const all: Seen[] = [];
  const attempts = async (count: number): Promise<readonly Seen[]> => {
    const more = await connector.attempts(count);
    all.push(...more);
    return more;
  };
  const seen = await probeFlow(flow.expect, attempts, limits);
  if (seen.status === 'inconclusive') return { inconclusive: seen.because };
  const observed = seen.status === 'observed' ? observationText(seen.observation, flow) : mixedText(all, flow);
  return { observed, because: [countText(all)] };
}

/** Each answer once, endpoints first. */
function mixedText(seen: readonly Seen[], flow: ScenarioFlow): string {
  const endpoints = seen.filter((one) => one.kind === 'endpoint').toSorted((a, b) => compareIps(a.address, b.address));
  const others = seen.filter((one) => one.kind !== 'endpoint').map((one) => seenText(one));
  const isOneKind = new Set(endpoints.map(({ isMasqueraded }) => isMasqueraded)).size === 1;
  const [first] = endpoints;
  const texts =
    first === undefined || !isOneKind
      ? endpoints.map((one) => seenText(one))
      : [observationText({ kind: 'forward', to: endpoints, masquerade: first.isMasqueraded }, flow)];
  return [...new Set([...texts, ...others.toSorted()])].join(' and ');
}
