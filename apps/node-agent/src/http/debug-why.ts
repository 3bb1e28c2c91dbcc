import { addressAndPort, HostError, type IpAddress, messageOf, millis } from '@switchyard/core';
import { type HttpAnswer, type HttpHandler, jsonAnswer, textAnswer } from '@switchyard/core/health';
import type { Loss, LossReader } from '@switchyard/drops';
import { openKernelTrace, type OpenTrace, traceFlow, withRule } from '../why/dropping-rule.ts';
import { answerText, judge, type WhyAnswer } from '../why/verdict.ts';
import type { ProbeOutcome } from '../why/send-probe.ts';
import type { DebugState } from './debug-state.ts';
import { type ExplainedFlow, explainFlow, type ExplainQuery, parseExplainQuery, tableFor } from './debug-explain.ts';
import { type OpenDrops, openKernelDrops, openReader, viewOf } from './debug-losses.ts';
import { parseNumber, parseTime } from './query-parameters.ts';

const whyUsage = [
  'usage: /debug/why?from=ADDRESS&to=ADDRESS:PORT[/PROTOCOL][&seconds=N][&probes=N][&trace=true|false][&source=pod|node|outside][&format=text|json]',
  '  GET watches the flow for some seconds (default 2, at most 60)',
  '  PUT also sends probes (default 1, at most 20) from the network namespace that has the address `from`; TCP and UDP',
  '  trace adds an nftables table meanwhile, by which the kernel names the rule of another program (default: with probes)',
  '  other parameters: as /debug/explain',
  '',
].join('\n');

const maxSeconds = 60;
const maxProbes = 20;
const probeTimeout = millis(1500);
/** Time from a drop to its record, and for the answer to an answer. */
const settleTime = millis(100);

/** Sends probes of a query at once. Rejects with `HostError`. */
export type SendProbes = (query: ExplainQuery, count: number) => Promise<readonly ProbeOutcome[]>;

/** `/debug/why`: why packets of one flow get no answer, in five lines. */
export function whyRoute(
  state: DebugState,
  open: OpenDrops = openKernelDrops,
  send: SendProbes = sendFromPod,
  openTrace: OpenTrace = openKernelTrace,
): HttpHandler {
  return async ({ method, query: parameters }, signal) => {
    const query = parseExplainQuery(parameters, ['seconds', 'probes', 'trace']);
    if (typeof query === 'string') return textAnswer(400, `${query}\n\n${whyUsage}`);
    const time = parseTime(parameters, { standard: 2, max: maxSeconds });
    if (typeof time === 'string') return textAnswer(400, `${time}\n\n${whyUsage}`);
    const count = parseNumber(parameters, 'probes', { standard: 1, max: maxProbes });
    if (typeof count === 'string') return textAnswer(400, `${count}\n\n${whyUsage}`);
    const withProbe = method === 'PUT';
    const isTraced = parameters.get('trace') ?? String(withProbe);
    if (isTraced !== 'true' && isTraced !== 'false') return textAnswer(400, `trace is true or false\n\n${whyUsage}`);
    if (withProbe && query.protocol === 'SCTP') return textAnswer(400, `SCTP has no probe: use GET\n\n${whyUsage}`);
    const table = tableFor(state, query);
    if (typeof table === 'string') return textAnswer(503, table);
    const { reader } = await openReader(state, open, signal);
    using _ = reader;
    await reader.start(viewOf(state), signal);
    const flow = explainFlow(state, table, query);
    using trace =
      isTraced === 'true' ? await traceFlow({ ...query, explanation: flow.explanation }, openTrace) : undefined;
    let probes: readonly ProbeOutcome[] = [];
    try {
      if (withProbe) probes = await send(query, count);
      else await state.clock.sleep(time, signal);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return textAnswer(503, `no probe was sent: ${messageOf(error)}\n`);
    }
    await state.clock.sleep(settleTime, signal);
    const found = await lossesOf(flow, { reader, state, query }, signal);
    const losses =
      trace === undefined ? found : found.map((loss, index) => (index === 0 ? withRule(loss, trace) : loss));
    const answer = judge({ explanation: flow.explanation, probes, losses, watched: reader.watchesPackets });
    return whyReply(query, answer, { flow, probes, losses, state });
  };
}

/** The package and the addon are loaded with the first probe. */
async function sendFromPod(
  { from, to, port, protocol }: ExplainQuery,
  count: number,
): Promise<readonly ProbeOutcome[]> {
  if (protocol === 'SCTP') throw new HostError('why.protocol', 'SCTP has no probe');
  const { namespaceOf } = await import('../why/pod-namespace.ts');
  const { sendProbe } = await import('../why/send-probe.ts');
  const target = { netns: namespaceOf(from), address: to, port, protocol, timeout: probeTimeout };
  return Promise.all(Array.from({ length: count }, () => sendProbe(target)));
}

interface Watched {
  readonly reader: LossReader;
  readonly state: DebugState;
  readonly query: ExplainQuery;
}

/** Losses of the flow's client and Service, the most frequent first. A refused socket has no client. */
async function lossesOf(
  { explanation }: ExplainedFlow,
  { reader, state, query }: Watched,
  signal: AbortSignal,
): Promise<readonly Loss[]> {
  const view = viewOf(state);
  const { losses } = await reader.read(view, signal);
  const asked = `${addressAndPort(query.to, query.port)}/${query.protocol}`;
  const isOfClient = (client: IpAddress | undefined): boolean => client === undefined || client === query.from;
  const isOfService = ({ frontend, services }: Loss): boolean =>
    frontend === asked || services.some((key) => key === explanation.service);
  const ofFlow = losses.filter((loss) => isOfClient(loss.client) && isOfService(loss));
  if (ofFlow.length > 0 || query.protocol !== 'TCP') return ofFlow.toSorted((a, b) => b.count - a.count);
  return reader.waitingOf({ client: query.from, address: query.to, port: query.port }, view);
}

interface Facts {
  readonly flow: ExplainedFlow;
  readonly probes: readonly ProbeOutcome[];
  readonly losses: readonly Loss[];
  readonly state: DebugState;
}

function whyReply(query: ExplainQuery, answer: WhyAnswer, { flow, probes, losses, state }: Facts): HttpAnswer {
  const { explanation } = flow;
  if (query.format === 'json') {
    const verdict = explanation.verdict;
    const endpoints = verdict.kind === 'forward' ? verdict.endpoints : [];
    return jsonAnswer(200, {
      node: state.nodeName,
      ...answer,
      service: explanation.service,
      endpoints,
      probes,
      losses,
    });
  }
  const to = `${addressAndPort(query.to, query.port)}/${query.protocol}`;
  const service = explanation.service === undefined ? '' : ` (${explanation.service})`;
  return textAnswer(200, answerText(`${query.from} -> ${to}${service} on ${state.nodeName}`, answer));
}
