import {
  assertNever,
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
  type Port,
  type Protocol,
  sourceClasses,
  tryParseIp,
  tryParsePort,
  tryParseProtocol,
  addressAndPort,
  type Endpoint,
  type Verdict,
} from '@switchyard/core';
import { traitsOf } from '../backends.ts';
import type { Failure } from '@switchyard/core/engine';
import { type HttpAnswer, type HttpRequest, jsonAnswer, textAnswer } from '@switchyard/core/health';
import { includesType, parseAccept } from './zpages.ts';
import { faultOfNames, parseFormat } from './query-parameters.ts';
import { type DebugState, failureView, familySummary, optional, timeText } from './debug-state.ts';

export interface ExplainQuery {
  readonly from: IpAddress;
  readonly to: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  /** As given; undefined: derived from the address. */
  readonly source: SourceClass | undefined;
  /** As given; undefined: true for pods and the node. Only for the ebpf mode. */
  readonly isSentHere: boolean | undefined;
  readonly format: 'text' | 'json' | undefined;
}

const explainUsage: string = [
  'usage: /debug/explain?from=ADDRESS&to=ADDRESS:PORT[/PROTOCOL][&source=pod|node|outside][&sent=here|elsewhere][&format=text|json]',
  '  from    address of the sender, such as 10.244.1.7',
  '  to      destination, such as 10.96.0.10:80/TCP or [fd00:10:96::10]:53/UDP; default: TCP',
  '  source  class of the sender; default: derived from its address',
  '  sent    whether a socket of this node sends; default: yes for pods and the node (ebpf mode only)',
  '',
].join('\n');

const names: readonly string[] = ['from', 'to', 'source', 'sent', 'format'];

/** Reads the parameters; each at most once, and no other than these and `more`. Returns the fault as text. */
export function parseExplainQuery(parameters: URLSearchParams, more: readonly string[] = []): ExplainQuery | string {
  const fault = faultOfNames(parameters, [...names, ...more]);
  if (fault !== undefined) return fault;
  const [fromText, toText] = [parameters.get('from'), parameters.get('to')];
  if (fromText === null) return 'from is missing';
  if (toText === null) return 'to is missing';
  const from = tryParseIp(fromText.replace(/^\[(.*)\]$/, '$1')); // as `to` needs it
  if (from === undefined) return `from ${JSON.stringify(fromText)} is not an IP address`;
  const target = parseTarget(toText);
  if (target === undefined) return `to ${JSON.stringify(toText)} is not ADDRESS:PORT/PROTOCOL`;
  if (ipFamilyOf(from) !== ipFamilyOf(target.to)) return `${from} and ${target.to} are of different IP families`;
  const source = parameters.get('source') ?? undefined;
  const isSource = (text: string): text is SourceClass => sourceClasses.some((one) => one === text);
  if (source !== undefined && !isSource(source)) return `source ${JSON.stringify(source)} is not a source class`;
  const sent = parameters.get('sent') ?? undefined;
  if (sent !== undefined && sent !== 'here' && sent !== 'elsewhere') {
    return `sent ${JSON.stringify(sent)} is neither here nor elsewhere`;
  }
  const isSentHere = sent === undefined ? undefined : sent === 'here';
  const format = parseFormat(parameters);
  if (typeof format === 'string') return format;
  return { from, ...target, source, isSentHere, format: format.format };
}

function parseTarget(text: string): Pick<ExplainQuery, 'to' | 'port' | 'protocol'> | undefined {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<ipv4>[^:]+)):(?<port>\d{1,5})(?:\/(?<protocol>\w+))?$/.exec(text);
  const groups = match?.groups ?? {};
  const to = tryParseIp(groups['ipv6'] ?? groups['ipv4'] ?? '');
  const port = tryParsePort(Number(groups['port']));
  const protocol = tryParseProtocol((groups['protocol'] ?? 'TCP').toUpperCase());
  return to === undefined || port === undefined || protocol === undefined ? undefined : { to, port, protocol };
}

export interface ExplainedFlow {
  readonly flow: Flow;
  /** How `flow.from` is known. */
  readonly sourceReason: string;
  readonly explanation: Explanation;
  /** A socket of this node gets the error, instead of a reply packet. */
  readonly isBySocket: boolean;
  /** Of the Service port that answers, if its last apply failed: the kernel may do otherwise. */
  readonly failure: Failure | undefined;
  readonly summary: Readonly<Record<string, unknown>>;
}

/**
 * `/debug/explain`: what happens to the first packet of a connection on this node, and why; text for people, JSON with
 * `format=json` or `Accept: application/json`. It is derived from the table that is in the kernel.
 */
export function explainAnswer(state: DebugState, { query: parameters, headers }: HttpRequest): HttpAnswer {
  const query = parseExplainQuery(parameters);
  if (typeof query === 'string') return textAnswer(400, `${query}\n\n${explainUsage}`);
  const table = tableFor(state, query);
  if (typeof table === 'string') return textAnswer(503, table);
  const explained = explainFlow(state, table, query);
  const format = query.format ?? acceptedFormat(headers['accept']);
  return format === 'json' ? jsonAnswer(200, jsonView(explained)) : textAnswer(200, explanationText(explained));
}

/** The applied table of the query's family, or why there is none. */
export function tableFor(state: DebugState, { to }: ExplainQuery): ForwardingTable | string {
  const ipFamily = ipFamilyOf(to);
  const why = state.ipFamilies.includes(ipFamily) ? 'nothing was applied yet' : 'this node does not have this family';
  return state.tables().get(ipFamily) ?? `no ${ipFamily} table: ${why}\n`;
}

function acceptedFormat(accept: string | undefined): 'text' | 'json' {
  const first = parseAccept(accept).find((range) =>
    ['text/plain', 'application/json'].some((type) => includesType(range, type)),
  );
  return first !== undefined && !includesType(first, 'text/plain') ? 'json' : 'text';
}

export function explainFlow(state: DebugState, table: ForwardingTable, query: ExplainQuery): ExplainedFlow {
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
  // If only the host's sockets are served, rules handle the packets of this node's pods like those from other nodes.
  const isByRules = state.socketLb === 'host' && flow.from !== 'node';
  const served = { ...flow, isSentHere: isByRules ? false : flow.isSentHere };
  const traits = traitsOf(state.mode);
  const explanation = explain(table, served, traits);
  const { frontend } = explanation;
  const failed = state.status().families.get(table.ipFamily)?.failedServices;
  return {
    flow,
    sourceReason: source.reason,
    explanation,
    // Sockets also get the error for a cluster IP without a Service.
    isBySocket: frontend === undefined ? isServedBySocket(served, traits) : isSentBySocket(served, frontend, traits),
    failure: explanation.service === undefined ? undefined : failed?.get(explanation.service),
    summary: familySummary(state, table.ipFamily),
  };
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

function explanationText({ flow, sourceReason, isBySocket, explanation, failure, summary }: ExplainedFlow): string {
  const target = `${addressAndPort(flow.destination, flow.destinationPort)}/${flow.protocol}`;
  const { verdict, reasons } = explanation;
  const width = Math.max(0, ...reasons.map(({ code }) => code.length));
  const freshness = [`applied ${String(summary['lastApplied'])}`];
  if (summary['pendingMs'] !== undefined) freshness.push(`newer changes wait for ${String(summary['pendingMs'])} ms`);
  if (summary['failure'] !== undefined) freshness.push('THE LAST APPLY FAILED');
  return [
    `${flow.source} (${flow.from}: ${sourceReason}) -> ${target}`,
    '',
    ...verdictLines(verdict, isBySocket),
    '',
    ...subjectLines(explanation),
    `table      ${String(summary['ipFamily'])} generation ${String(summary['generation'])}, ${freshness.join(', ')}`,
    ...(failure === undefined
      ? []
      : [`NOT AS SHOWN: the kernel has refused this Service port since ${timeText(failure.since)}: ${failure.text}`]),
    '',
    'why',
    ...reasons.map(({ code, text }) => `  ${code.padEnd(width)}  ${text}`),
    '',
  ].join('\n');
}

function verdictLines(verdict: Verdict, isBySocket: boolean): readonly string[] {
  switch (verdict.kind) {
    case 'forward': {
      const { endpoints, masquerade } = verdict;
      const source = masquerade ? "source address replaced by this node's" : 'source address kept';
      const choice = endpoints.length === 1 ? 'the only endpoint' : `one of ${endpoints.length} endpoints`;
      return [`forward to ${choice}, ${source}`, ...endpoints.map((endpoint) => `  ${endpointText(endpoint)}`)];
    }
    case 'reject':
      return [
        isBySocket ? 'reject: the call fails at once, ECONNREFUSED' : 'reject: the sender gets an ICMP error at once',
      ];
    case 'drop':
      return [isBySocket ? 'drop: the call fails at once, EPERM' : 'drop: the sender gets no answer'];
    case 'pass':
      return ['pass: not addressed to a Service; routed as if there were no proxy'];
    default:
      return assertNever(verdict);
  }
}

function subjectLines({ service, frontend }: Explanation): readonly string[] {
  if (service === undefined || frontend === undefined) return [];
  const { address, port } = frontend;
  const place = address === 'anyNodePortAddress' ? `any NodePort address:${port}` : addressAndPort(address, port);
  return [`service    ${service}`, `frontend   ${frontend.kind} ${place}`];
}

function endpointText({ address, port, nodeName, isLocal, ready }: Endpoint): string {
  const where = isLocal ? 'this node' : `node ${nodeName ?? 'unknown'}`;
  return `${addressAndPort(address, port)}  ${where}${ready ? '' : ', terminating'}`;
}
