import { assertNever, type Explanation } from '@switchyard/core';
import type { Loss } from '@switchyard/drops';
import type { ProbeOutcome } from './send-probe.ts';

/** Facts about one flow. */
export interface Observation {
  readonly explanation: Explanation;
  readonly probes: readonly ProbeOutcome[];
  /** Losses of this flow while it was watched, the most frequent first. */
  readonly losses: readonly Loss[];
  /** Whether dropped packets could be watched. */
  readonly watched: boolean;
}

/** Answer in five lines. */
export interface WhyAnswer {
  readonly verdict: 'works' | 'refused' | 'lost' | 'unanswered' | 'forwarded' | 'notAService';
  readonly where: string;
  readonly why: string;
  readonly advice: string;
  readonly certainty: 'sure' | 'likely' | 'unknown';
}

const nothingToDo = 'nothing';

/** Puts together what the Service wants, what a probe met, and what the kernel dropped. */
export function judge(observation: Observation): WhyAnswer {
  const { explanation, probes, losses } = observation;
  const [loss] = losses;
  if (probes.length > 0 && unansweredOf(probes).length === 0) {
    const where = loss === undefined ? '' : `; other packets are lost: ${loss.why}`;
    const slowest = `${Math.max(...probes.map(({ took }) => took)).toFixed(1)} ms`;
    const all = `all ${probes.length} probes were answered, the slowest after ${slowest}`;
    return {
      verdict: 'works',
      where: 'end to end',
      why: `${probes.length === 1 ? `the probe was answered after ${slowest}` : all}${where}`,
      advice: loss?.advice ?? nothingToDo,
      certainty: 'sure',
    };
  }
  if (loss !== undefined) return fromLoss(loss, probes);
  return withoutLoss(observation, explanation);
}

function unansweredOf(probes: readonly ProbeOutcome[]): readonly ProbeOutcome[] {
  return probes.filter(({ status }) => status !== 'answered');
}

/** Share of the unanswered probes; empty if all or none were answered. */
function shareText(probes: readonly ProbeOutcome[]): string {
  const unanswered = unansweredOf(probes).length;
  return unanswered === 0 || unanswered === probes.length ? '' : `${unanswered} of ${probes.length} probes: `;
}

function fromLoss(
  { cause, where, why, advice, certainty, direction, reason }: Loss,
  probes: readonly ProbeOutcome[],
): WhyAnswer {
  const place = where.netns === 'socket' ? 'at the socket of the client' : `in the namespace of the ${where.netns}`;
  const hook = where.hook === undefined ? '' : `, at the hook ${where.hook}`;
  return {
    verdict: refusals.has(cause) ? 'refused' : 'lost',
    where: `this node, ${place}${hook}${direction === 'answer' ? ', on the way back' : ''}`,
    why: `${shareText(probes)}${why} [${cause}, kernel: ${reason}]`,
    advice,
    certainty,
  };
}

const refusals: ReadonlySet<string> = new Set(['noEndpoints', 'noLocalEndpoint', 'sourceNotAllowed', 'unknownPort']);

/** Nothing was dropped here: the Service's own decision, else what the probe met. */
function withoutLoss({ probes, watched }: Observation, { verdict, reasons }: Explanation): WhyAnswer {
  const text = reasons.map((reason) => reason.text).join('; ');
  switch (verdict.kind) {
    case 'reject':
    case 'drop':
      return {
        verdict: 'refused',
        where: 'this node, by the Service',
        why: text,
        advice: 'change what the last reason names',
        certainty: 'sure',
      };
    case 'pass':
      return {
        verdict: 'notAService',
        where: 'this node',
        why: text,
        advice: 'send to an address and a port of the Service',
        certainty: 'sure',
      };
    case 'forward':
      return forwarded(
        probes,
        watched,
        verdict.endpoints.map(({ address, nodeName }) => `${address} on ${nodeName ?? '?'}`),
      );
    default:
      return assertNever(verdict);
  }
}

function forwarded(probes: readonly ProbeOutcome[], watched: boolean, endpoints: readonly string[]): WhyAnswer {
  const to = endpoints.slice(0, 3).join(', ') + (endpoints.length > 3 ? `, and ${endpoints.length - 3} more` : '');
  if (probes.length === 0) {
    return {
      verdict: 'forwarded',
      where: 'this node',
      why: `the Service forwards it to ${to}; ${watched ? 'no packet of it was dropped' : 'dropped packets were not watched'}`,
      advice: 'send a probe, or watch for longer',
      certainty: watched ? 'likely' : 'unknown',
    };
  }
  const outcomes = new Set(
    unansweredOf(probes).map((probe) => (probe.status === 'failed' ? `failed with ${probe.code}` : 'got no answer')),
  );
  const subject = shareText(probes) === '' ? 'the probe ' : shareText(probes);
  return {
    verdict: 'unanswered',
    where: watched ? 'beyond this node' : 'unknown',
    why: `${subject}${[...outcomes].join(' or ')}; this node forwards it to ${to}${watched ? ' and dropped no packet of it' : ''}`,
    advice: 'ask the nodes of these endpoints',
    certainty: watched ? 'likely' : 'unknown',
  };
}

/** The five lines, with the question before them. */
export function answerText(question: string, { verdict, where, why, advice, certainty }: WhyAnswer): string {
  return [
    question,
    '',
    `verdict  ${verdictTexts[verdict]}`,
    `where    ${where}`,
    `why      ${why}`,
    `change   ${advice}`,
    `sure     ${certainty}`,
    '',
  ].join('\n');
}

const verdictTexts: Readonly<Record<WhyAnswer['verdict'], string>> = {
  works: 'it works',
  refused: 'refused',
  lost: 'lost',
  unanswered: 'no answer',
  forwarded: 'forwarded',
  notAService: 'not addressed to a Service',
};
