import { parseArgs } from 'node:util';
import { ConfigError, HostError, messageOf } from '@switchyard/core';
import { answerText, type WhyAnswer } from '../why/verdict.ts';

const askUsage = `usage: switchyard-agent why FROM ADDRESS:PORT[/PROTOCOL] [--probe] [--seconds N]
       switchyard-agent losses [--follow] [--seconds N] [--namespace NAME]

Why packets of Services are lost on this node, from the agent that runs here. For the whole cluster: kubectl switchyard.

  FROM              address of a pod of this node, or of this node
  --probe           send real probes from the pod's network namespace
  --probes N        how many, 1 to 20; default 10
  --seconds N       time to watch; why 2, losses 10
  --follow          watch until ^C
  --namespace NAME  only its Services
  --agent URL       the agent's metrics server; default http://127.0.0.1:10249, of an observer http://127.0.0.1:10239

Exit status: 0 nothing is lost, it works; 2 losses or refusals were found; 1 an error
`;

const options = {
  probe: { type: 'boolean' },
  probes: { type: 'string' },
  seconds: { type: 'string' },
  follow: { type: 'boolean' },
  namespace: { type: 'string' },
  agent: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Access of a command to the terminal and the agent. */
export interface AskContext {
  readonly print: (text: string) => void;
  readonly fetch: typeof fetch;
}

/** Whether the command line is a question to the running agent. */
export function isQuestion([command]: readonly string[]): boolean {
  return command === 'why' || command === 'losses';
}

/** Asks the agent of this node and prints its answer; the result is the exit status. Rejects with `ConfigError`, and `HostError` for an agent that gives no answer. */
export async function askCommand(args: readonly string[], context: AskContext, signal: AbortSignal): Promise<0 | 2> {
  const { values, positionals } = parse(args);
  const [command, ...operands] = positionals;
  if (values.help === true) {
    context.print(askUsage);
    return 0;
  }
  const wanted = command === 'why' ? 2 : 0;
  if (operands.length !== wanted) throw wrong(`${command} takes ${wanted} operands; got ${operands.length}`);
  const base = values.agent ?? 'http://127.0.0.1:10249';
  return command === 'why'
    ? why(operands, { ...values, base }, { context, signal })
    : losses({ ...values, base }, { context, signal });
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

interface Values {
  readonly base: string;
  readonly probe?: boolean;
  readonly probes?: string;
  readonly seconds?: string;
  readonly follow?: boolean;
  readonly namespace?: string;
}

interface Asking {
  readonly context: AskContext;
  readonly signal: AbortSignal;
}

async function why(
  [from = '', to = '']: readonly string[],
  values: Values,
  { context, signal }: Asking,
): Promise<0 | 2> {
  const probes = values.probes ?? (values.probe === true ? '10' : undefined);
  const query = new URLSearchParams({ from, to, format: 'json' });
  if (values.seconds !== undefined) query.set('seconds', values.seconds);
  if (probes !== undefined) query.set('probes', probes);
  const method = probes === undefined ? 'GET' : 'PUT';
  const response = await open({ url: `${values.base}/debug/why?${query}`, method }, context, signal);
  const answer = (await response.json()) as WhyAnswer & { readonly node: string; readonly service?: string };
  const service = answer.service === undefined ? '' : ` (${answer.service})`;
  context.print(answerText(`${from} -> ${to}${service} on ${answer.node}`, answer));
  return answer.verdict === 'works' || answer.verdict === 'forwarded' ? 0 : 2;
}

async function losses(values: Values, { context, signal }: Asking): Promise<0 | 2> {
  const query = new URLSearchParams({ seconds: values.seconds ?? (values.follow === true ? '3600' : '10') });
  if (values.namespace !== undefined) query.set('namespace', values.namespace);
  const response = await open({ url: `${values.base}/debug/losses?${query}`, method: 'GET' }, context, signal);
  let lines = 0;
  try {
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      lines += text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
      context.print(text);
    }
  } catch (error) {
    if (!signal.aborted) throw error; // ^C is how it ends
  }
  return lines > 1 ? 2 : 0; // beside the head
}

async function open(
  { url, method }: { readonly url: string; readonly method: string },
  { fetch }: AskContext,
  signal: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { method, signal });
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new HostError(
      'ask.unreachable',
      `cannot reach the agent at ${url}: ${messageOf(cause)}; does it run, and is --agent right?`,
    );
  }
  if (response.ok) return response;
  const [text = ''] = (await response.text()).trim().split('\n');
  throw new HostError('ask.refused', `the agent answered ${response.status} to ${method} ${url}: ${text}`);
}

function wrong(message: string): ConfigError {
  return new ConfigError('config.arguments', `${message} (switchyard-agent why --help)`);
}
