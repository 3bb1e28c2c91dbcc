import {
  assertNever,
  type DataplaneTraits,
  explain,
  type Explanation,
  type Flow,
  type ForwardingTable,
  type IpAddress,
  ipFamilyOf,
  isSentBySocket,
  isServedBySocket,
  type SourceClass,
  sourceClassOf,
} from '@switchyard/core';
import { traitsOf } from '../backends.ts';
import { type Failure } from '@switchyard/core/engine';
import { type HttpAnswer, type HttpRequest, jsonAnswer, textAnswer } from '@switchyard/core/health';
import { includesType, parseAccept } from './accept.ts';
import { type DebugState, failureView, familySummary, optional } from './debug-state.ts';
import { type ExplainQuery, explainUsage, parseExplainQuery } from './explain-query.ts';
import { explanationText } from './explain-text.ts';

/** Explanation of one flow. */
export interface ExplainedFlow {
  readonly flow: Flow;
  /** How `flow.from` is known. */
  readonly sourceReason: string;
  readonly explanation: Explanation;
  /** A socket of this node gets the error, instead of a reply packet. */
  readonly isBySocket: boolean;
  /** Of the Service port that answers, if its last apply failed: the kernel may do otherwise. */
  readonly failure: Failure | undefined;
  /** Where the family stands. */
  readonly summary: Readonly<Record<string, unknown>>;
}

/**
 * `/debug/explain`: what happens to the first packet of a connection on this node, and why; text for people, JSON with
 * `format=json` or `Accept: application/json`. It is derived from the table that is in the kernel.
 */
export function explainAnswer(state: DebugState, { query: parameters, headers }: HttpRequest): HttpAnswer {
  const parsed = parseExplainQuery(parameters);
  if (parsed.status === 'bad') return textAnswer(400, `${parsed.why}\n\n${explainUsage}`);
  const { query } = parsed;
  const ipFamily = ipFamilyOf(query.to);
  const table = state.tables().get(ipFamily);
  if (table === undefined) {
    const why = state.ipFamilies.includes(ipFamily) ? 'nothing was applied yet' : 'this node does not have this family';
    return textAnswer(503, `no ${ipFamily} table: ${why}\n`);
  }
  const explained = explainFlow(state, table, query);
  const format = query.format ?? acceptedFormat(headers['accept']);
  return format === 'json' ? jsonAnswer(200, jsonView(explained)) : textAnswer(200, explanationText(explained));
}

function acceptedFormat(accept: string | undefined): 'text' | 'json' {
  const first = parseAccept(accept).find((range) =>
    ['text/plain', 'application/json'].some((type) => includesType(range, type)),
  );
  return first !== undefined && !includesType(first, 'text/plain') ? 'json' : 'text';
}

function explainFlow(state: DebugState, table: ForwardingTable, query: ExplainQuery): ExplainedFlow {
  const addresses = state.interfaceAddresses();
  const source = sourceOf(table, query, addresses);
  const flow: Flow = {
    from: source.from,
    isSentHere: query.isSentHere,
    source: query.from,
    destination: query.to,
    destinationPort: query.port,
    protocol: query.protocol,
    destinationIsLocal: isOurs(query.to, addresses),
  };
  const served = { ...flow, isSentHere: isServedHere(state, flow) };
  const traits = traitsOf(state.mode);
  const explanation = explain(table, served, traits);

  const failed = state.status().families.get(table.ipFamily)?.failedServices;
  return {
    flow,
    sourceReason: source.reason,
    explanation,
    isBySocket: isBySocket(served, explanation, traits),
    failure: explanation.service === undefined ? undefined : failed?.get(explanation.service),
    summary: familySummary(state, table.ipFamily),
  };
}

/** If only the host's sockets are served, rules handle the packets of this node's pods like those from other nodes. */
function isServedHere({ socketLb }: DebugState, { from, isSentHere }: Flow): boolean | undefined {
  return socketLb === 'host' && from !== 'node' ? false : isSentHere;
}

/** Sockets also get the error for a cluster IP without a Service. */
function isBySocket(flow: Flow, { frontend }: Explanation, traits: DataplaneTraits): boolean {
  return frontend === undefined ? isServedBySocket(flow, traits) : isSentBySocket(flow, frontend, traits);
}

function sourceOf(
  table: ForwardingTable,
  { from, source }: ExplainQuery,
  addresses: readonly IpAddress[],
): { readonly from: SourceClass; readonly reason: string } {
  if (source !== undefined) return { from: source, reason: 'as the question says' };
  const { podDetector: detector } = table;
  const told = sourceClassOf(table, from, isOurs(from, addresses));
  switch (told) {
    case 'pod':
      return { from: told, reason: detector.kind === 'cidr' ? `inside the pod range ${detector.cidr}` : 'a pod' };
    case 'node':
      return { from: told, reason: 'an address of this node' };
    case 'outside':
      return { from: told, reason: outsideReason(detector) };
    default:
      return assertNever(told);
  }
}

function outsideReason(detector: ForwardingTable['podDetector']): string {
  switch (detector.kind) {
    case 'none':
      return 'not an address of this node; pods of this IP family are not recognized';
    case 'cidr':
      return `neither an address of this node nor inside the pod range ${detector.cidr}`;
    case 'interface':
    case 'interfacePrefix':
      return 'not an address of this node; pods are recognized by interface, so add source=pod if the sender is one';
    default:
      return assertNever(detector);
  }
}

function isOurs(address: IpAddress, addresses: readonly IpAddress[]): boolean {
  return addresses.includes(address) || address === '::1' || address.startsWith('127.');
}

function jsonView({ flow, sourceReason, explanation, failure, summary }: ExplainedFlow): unknown {
  return {
    flow: { ...flow, fromReason: sourceReason },
    verdict: explanation.verdict,
    ...optional('service', explanation.service),
    ...optional('frontend', explanation.frontend),
    reasons: explanation.reasons,
    ...optional('serviceFailure', failure, failureView),
    table: summary,
  };
}
