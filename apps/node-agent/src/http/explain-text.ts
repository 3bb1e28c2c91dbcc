import { addressAndPort, assertNever, type Endpoint, type Explanation, type Verdict } from '@switchyard/core';
import type { ExplainedFlow } from './debug-explain.ts';
import { timeText } from './debug-state.ts';

/** Formats an explained flow as text: verdict, Service and frontend, reasons. */
export function explanationText({
  flow,
  sourceReason,
  isBySocket,
  explanation,
  failure,
  summary,
}: ExplainedFlow): string {
  const target = `${addressAndPort(flow.destination, flow.destinationPort)}/${flow.protocol}`;
  const { verdict, reasons } = explanation;
  const width = Math.max(0, ...reasons.map(({ code }) => code.length));
  return [
    `${flow.source} (${flow.from}: ${sourceReason}) -> ${target}`,
    '',
    ...verdictLines(verdict, isBySocket),
    '',
    ...subjectLines(explanation),
    `table      ${String(summary['ipFamily'])} generation ${String(summary['generation'])}, ${freshness(summary)}`,
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

function freshness(summary: ExplainedFlow['summary']): string {
  const { lastApplied, pendingMs, failure } = summary;
  const parts = [`applied ${String(lastApplied)}`];
  if (pendingMs !== undefined) parts.push(`newer changes wait for ${String(pendingMs)} ms`);
  if (failure !== undefined) parts.push('THE LAST APPLY FAILED');
  return parts.join(', ');
}

function endpointText({ address, port, nodeName, isLocal, ready }: Endpoint): string {
  const where = isLocal ? 'this node' : `node ${nodeName ?? 'unknown'}`;
  return `${addressAndPort(address, port)}  ${where}${ready ? '' : ', terminating'}`;
}
