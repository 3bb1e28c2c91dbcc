import { type IpAddress, type IpFamily, ipFamilyOf } from '@switchyard/core';
import type { ProbeResult } from '@switchyard/lab';
import type { Expectation, ScenarioFlow } from '@switchyard/scenarios';
import type { Seen } from '../model/test-environment.ts';
import { seenOfSilence } from '../lab/answers.ts';
import { scenarioPort } from './echo-pool.ts';

/** The flow, its sender, and the pods that may have answered. */
export interface AnswerContext {
  readonly flow: ScenarioFlow;
  /** The address the packet left with. */
  readonly source: string;
  /** All that node1 has, of any interface: what masquerading can mean. */
  readonly nodeAddresses: readonly string[];
  /** The endpoint of this family that a pod stands for; undefined: none. */
  readonly endpointOf: (pod: string, ipFamily: IpFamily) => IpAddress | undefined;
}

/** A probe's result in the terms of a scenario. */
export function seenOf(result: ProbeResult, context: AnswerContext): Seen {
  const { flow, source, endpointOf } = context;
  if (result.status !== 'answered') return seenOfSilence(result);
  const { by, seenSource = '' } = result;
  if (by === undefined) return { kind: 'other', text: 'answered by a stranger' };
  const address = endpointOf(by, ipFamilyOf(flow.to));
  if (address === undefined) return { kind: 'other', text: `answered by ${by}` };
  const isSender = address === flow.fromEndpoint;
  const isMasqueraded = masqueradeOf(seenSource, context, isSender);
  if (isMasqueraded === undefined)
    return { kind: 'other', text: `${address} saw the source ${seenSource}, not ${source}` };
  const { destinationPort } = JSON.parse(result.body) as { readonly destinationPort: number };
  return { kind: 'endpoint', address, port: scenarioPort(destinationPort), isMasqueraded, isSender };
}

/**
 * Whether the seen source is the node's instead of the sender's; undefined: neither. Packets of the node always have one of its
 * addresses: if it is the one they were sent from, masquerading cannot be seen, and the expected value is returned.
 */
function masqueradeOf(
  seen: string,
  { flow, source, nodeAddresses }: AnswerContext,
  isSender: boolean,
): boolean | undefined {
  if (seen === source) return nodeAddresses.includes(source) ? expectedMasquerade(flow.expect, isSender) : false;
  return nodeAddresses.includes(seen) ? true : undefined;
}

function expectedMasquerade(expect: Expectation, isSender: boolean): boolean {
  if (expect.kind !== 'forward') return false;
  return isSender ? expect.isHairpinMasqueraded : expect.masquerade;
}
