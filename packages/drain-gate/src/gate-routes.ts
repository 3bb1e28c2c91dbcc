import { type IpAddress, seconds, tryParseIp } from '@switchyard/core';
import { type HttpAnswer, type HttpHandler, jsonAnswer, textAnswer } from '@switchyard/core/health';
import type { DrainAnswer, DrainRequest } from './drain.ts';

/** Answers of a gate. */
export interface GateRoutesOptions {
  readonly isInSync: () => boolean;
  readonly drain: (request: DrainRequest, signal: AbortSignal) => Promise<DrainAnswer>;
  readonly log: (answer: DrainAnswer) => void;
}

const usage = [
  'usage: /drain?pod=ADDRESS[,ADDRESS][&seconds=N][&connections=wait|ignore][&format=text|json]',
  '  Answers 200 when the pod can be stopped without a lost request, 503 with the reasons when the time is over.',
  '  pod          its addresses, as status.podIPs has them',
  '  seconds      longest wait, 1 to 3600; default 20, less than the usual terminationGracePeriodSeconds',
  '  connections  wait (default) for its open TCP connections, or ignore them',
  '',
].join('\n');

/** Requests that wait; each costs a few KB. */
const maxWaiting = 5000;

/** `/drain`, and `/healthz` for probes. */
export function gateHandler({ isInSync, drain, log }: GateRoutesOptions): HttpHandler {
  let waiting = 0;
  const answerDrain = async (query: URLSearchParams, signal: AbortSignal): Promise<HttpAnswer> => {
    const request = parse(query);
    if (typeof request === 'string') return textAnswer(400, `${request}\n\n${usage}`);
    if (waiting >= maxWaiting) return textAnswer(429, `429 ${maxWaiting} others wait; try again later\n`);
    waiting++;
    try {
      const answer = await drain(request, signal);
      log(answer);
      const status = answer.isSafe ? 200 : 503;
      return query.get('format') === 'json' ? jsonAnswer(status, answer) : textAnswer(status, drainText(answer));
    } finally {
      waiting--;
    }
  };
  return ({ path, query }, signal) => {
    if (path === '/healthz') return isInSync() ? textAnswer(200, 'ok\n') : textAnswer(503, 'not in sync yet\n');
    return path === '/drain' ? answerDrain(query, signal) : textAnswer(404, '404 page not found\n');
  };
}

function parse(query: URLSearchParams): DrainRequest | string {
  for (const name of query.keys()) {
    if (!['pod', 'seconds', 'connections', 'format'].includes(name)) return `unknown parameter ${JSON.stringify(name)}`;
    if (query.getAll(name).length > 1) return `${name} is given more than once`;
  }
  const texts = (query.get('pod') ?? '').split(',');
  const addresses = texts.map((text) => tryParseIp(text)).filter((one): one is IpAddress => one !== undefined);
  if (addresses.length < texts.length) return `pod ${JSON.stringify(query.get('pod') ?? '')} is no list of addresses`;
  const time = query.get('seconds') ?? '20';
  if (!/^\d{1,4}$/.test(time) || Number(time) < 1 || Number(time) > 3600)
    return `seconds ${JSON.stringify(time)} is no number from 1 to 3600`;
  const connections = query.get('connections') ?? 'wait';
  if (connections !== 'wait' && connections !== 'ignore')
    return `connections ${JSON.stringify(connections)} is neither wait nor ignore`;
  const format = query.get('format') ?? 'text';
  if (format !== 'text' && format !== 'json') return `format ${JSON.stringify(format)} is neither text nor json`;
  return { addresses, timeout: seconds(Number(time)), connections };
}

/** Reasons in one answer; more are counted. */
const maxReasons = 20;

/** One line, and one for each reason. */
export function drainText({ isSafe, addresses, waited, nodes, connections, reasons, services }: DrainAnswer): string {
  const { slowest, applied, total } = nodes;
  const last = slowest === undefined ? '' : `, the last ${slowest.node} after ${Math.round(slowest.after)} ms`;
  const open = connections === undefined ? '' : `, ${connections} connections`;
  const pod = `${addresses.join(',')} (${services.join(', ') || 'no Service'})`;
  const head = `${isSafe ? 'safe' : 'not safe'} to stop ${pod} after ${Math.round(waited)} ms: applied by ${applied} of ${total} nodes${last}${open}`;
  const more = reasons.length > maxReasons ? [`and ${reasons.length - maxReasons} more`] : [];
  return `${[head, ...reasons.slice(0, maxReasons), ...more].join('\n  ')}\n`;
}
