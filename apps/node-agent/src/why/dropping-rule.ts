import { type Explanation, HostError, type IpAddress, type Port, type Protocol } from '@switchyard/core';
import type { Loss } from '@switchyard/drops';
import type { DroppingRule, RuleTrace, TracedTraffic } from '@switchyard/netfilter';

/** Opens a trace of this network namespace. Rejects with `HostError`. */
export type OpenTrace = (traffic: TracedTraffic) => Promise<RuleTrace>;

/** The package and the addon are loaded with the first trace. */
export const openKernelTrace: OpenTrace = async (traffic) =>
  (await import('@switchyard/netfilter')).openRuleTrace(traffic);

/** A flow, and how its Service treats it. */
export interface TracedFlow {
  readonly from: IpAddress;
  readonly to: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  readonly explanation: Explanation;
}

/** Ports of a Service and its endpoints that are traced; mostly there are two. */
const maxPorts = 16;

/** Traces the packets of a flow; undefined for SCTP, and without the right to trace. */
export async function traceFlow(
  { from, to, port, protocol, explanation: { verdict } }: TracedFlow,
  open: OpenTrace,
): Promise<RuleTrace | undefined> {
  if (protocol === 'SCTP') return undefined;
  const endpoints = verdict.kind === 'forward' ? verdict.endpoints : [];
  const servers = new Set([to, ...endpoints.map(({ address }) => address)]);
  const ports = new Set([port, ...new Set(endpoints.map((one) => one.port))].slice(0, maxPorts));
  try {
    return await open({ client: from, servers, ports, protocol });
  } catch (error) {
    if (error instanceof HostError) return undefined;
    throw error;
  }
}

/** Adds the name of the rule to the loss, if a rule of another program on this node is its cause. Rules of iptables-legacy are not traced. */
export function withRule(loss: Loss, trace: RuleTrace): Loss {
  if (loss.cause !== 'otherRule' || loss.where.netns !== 'node') return loss;
  const dropped = trace.droppedBy();
  if (dropped === undefined) return loss;
  const { family, table, chain } = dropped;
  const advice = `see it with \`nft -a list chain ${family} ${table} ${chain}\`; it may be a network policy`;
  return { ...loss, why: `${loss.why}; it is ${ruleText(dropped)}`, advice, certainty: 'sure' };
}

function ruleText({ family, table, chain, rule }: DroppingRule): string {
  const place = `chain ${family} ${table} ${chain}`;
  if (rule === undefined) return `the policy of ${place}`;
  const position = rule.position === undefined ? 'a rule' : `rule ${rule.position}`;
  return `${position} of ${place} (handle ${rule.handle})`;
}
