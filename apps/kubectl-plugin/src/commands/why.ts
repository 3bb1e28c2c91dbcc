import { addressAndPort, ConfigError, HostError, messageOf, millis, parseIp, type Port } from '@switchyard/core';
import { askAgent, askLines } from '../access/ask.ts';
import type { Agent } from '../access/agents.ts';
import type { CommandContext, ExitStatus } from './context.ts';

interface Pod {
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip: string }[] };
}

interface Node {
  readonly status: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] };
}

interface Service {
  readonly spec: {
    readonly clusterIP?: string;
    readonly ports?: readonly {
      readonly name?: string;
      readonly port: number;
      readonly protocol?: string;
      readonly nodePort?: number;
    }[];
  };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } };
}

/** An agent's answer to `/debug/why?format=json`. */
interface WhyAnswer {
  readonly node: string;
  readonly verdict: string;
  readonly where: string;
  readonly why: string;
  readonly advice: string;
  readonly certainty: string;
  readonly service?: string;
  readonly endpoints: readonly { readonly address: string; readonly nodeName?: string }[];
  readonly probes: readonly { readonly status: string }[];
  readonly losses?: readonly Omit<RemoteLoss, 'node'>[];
}

interface RemoteLoss {
  readonly node: string;
  readonly cause?: string;
  readonly why?: string;
  readonly advice?: string;
  readonly certainty?: string;
  readonly client?: string;
  readonly services?: readonly string[];
  readonly where?: { readonly netns: string; readonly hook?: string };
  readonly reason?: string;
}

interface Question {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  /** Node that handles the first packet. */
  readonly node: string | undefined;
  readonly source: 'pod' | 'outside';
}

/** `why`: asks the client's node, while the nodes of the endpoints watch, and prints five lines; with `--follow` when they change. */
export async function whyCommand(context: CommandContext, signal: AbortSignal): Promise<ExitStatus> {
  const { config, findAgents, print, clock } = context;
  const question =
    config.fromOutside === undefined
      ? await ofPod(context, signal)
      : await fromOutside(context, config.fromOutside, signal);
  using found = await findAgents();
  let shown = '';
  let status: ExitStatus = 0;
  do {
    let answer: WhyAnswer;
    try {
      if (shown !== '') await clock.sleep(pause, signal);
      answer = await answerOf(context, question, { agents: found.agents, signal });
    } catch (error) {
      if (config.follow && signal.aborted) return status; // ^C is how it ends
      throw error;
    }
    if (answer.verdict !== 'works' && answer.verdict !== 'forwarded') status = 2;
    const subject = `${answer.verdict} ${answer.where} ${answer.why.replaceAll(/[\d.]+ ms/g, '')}`;
    if (subject === shown) continue;
    shown = subject;
    if (config.follow && !config.isJson) print(`${new Date(clock.now()).toISOString().slice(11, 19)}\n`);
    print(config.isJson ? `${JSON.stringify(answer, undefined, config.follow ? 0 : 2)}\n` : text(question, answer));
  } while (config.follow && !signal.aborted);
  return status;
}

interface Asked {
  readonly agents: readonly Agent[];
  readonly signal: AbortSignal;
}

/** Time until another node has read a drop of this moment. */
const remoteReading = millis(1000);
/** Time that other nodes get to begin to watch. */
const longestBegin = millis(3000);
/** Time between two answers that are followed. */
const pause = millis(1000);

async function answerOf(
  { config, warn, clock }: CommandContext,
  question: Question,
  { agents, signal }: Asked,
): Promise<WhyAnswer> {
  const here = agents.find(({ node }) => node === question.node);
  if (here === undefined) {
    throw new HostError(
      'why.node',
      `no agent can be reached on node ${question.node ?? '(unknown: name it with --node)'}`,
    );
  }
  const stop = new AbortController();
  const end = AbortSignal.any([signal, stop.signal]);
  const remote: RemoteLoss[] = [];
  const watches = agents
    .filter((agent) => agent !== here)
    .map((agent) => watchNode(agent, { into: remote, warn }, end));
  try {
    const late = clock.sleep(longestBegin, end).catch(() => undefined);
    await Promise.race([Promise.all(watches.map(({ begun }) => begun)), late]);
    const method = config.probes > 0 ? 'PUT' : 'GET';
    const answer = await askAgent<WhyAnswer>(here, pathOf(question, config), { method, signal });
    if (answer.verdict !== 'unanswered' && answer.verdict !== 'forwarded') return answer;
    const latest = clock.now() + remoteReading;
    for (;;) {
      const loss = remoteLoss(answer, remote);
      const there = agents.find(({ node }) => node === loss?.node);
      if (loss?.cause === 'otherRule' && loss.where?.netns === 'node' && there !== undefined && config.probes > 0) {
        const named = await nameRule(loss, { there, here, question, config, clock }, signal);
        return beyond(answer, question, named);
      }
      if (loss !== undefined) return beyond(answer, question, loss);
      if (watches.length === 0 || clock.now() >= latest) return answer;
      await clock.sleep(millis(50), signal);
    }
  } finally {
    stop.abort();
    await Promise.all(watches.map(({ ended }) => ended));
  }
}

function pathOf(
  { from, to, port, protocol, source }: Question,
  { seconds = 2, probes }: Pick<CommandContext['config'], 'seconds' | 'probes'>,
): string {
  const target = `${addressAndPort(parseIp(to), port as Port)}/${protocol}`; // checked by the agent
  const query = new URLSearchParams({ from, to: target, source, format: 'json', seconds: String(seconds) });
  if (probes > 0) query.set('probes', String(probes));
  return `/debug/why?${query}`;
}

interface Watching {
  /** Resolves when the node watches, or cannot. */
  readonly begun: Promise<void>;
  readonly ended: Promise<void>;
}

/** Collects losses until the signal; readings come twice a second. Warns of a node that cannot watch. */
function watchNode(
  agent: Agent,
  { into, warn }: { readonly into: RemoteLoss[]; readonly warn: (text: string) => void },
  signal: AbortSignal,
): Watching {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    try {
      for await (const line of askLines<RemoteLoss>(agent, '/debug/losses?format=json&seconds=70', signal)) {
        resolve(); // the first line is about the node itself
        if (line.cause !== undefined) into.push(line);
      }
    } catch (error) {
      if (!signal.aborted) warn(messageOf(error));
    } finally {
      resolve();
    }
  };
  return { begun, ended: follow() };
}

/** The loss of another node that belongs to this flow. After masquerading the client is the node. */
function remoteLoss({ service }: WhyAnswer, losses: readonly RemoteLoss[]): RemoteLoss | undefined {
  return losses.find(
    ({ services = [], client }) => service !== undefined && services.includes(service) && client !== undefined,
  );
}

interface Tracing extends Pick<CommandContext, 'config' | 'clock'> {
  readonly question: Question;
  /** Node of the loss. */
  readonly there: Agent;
  readonly here: Agent;
}

/** Sends probes again, while the other node traces their packets, and adds the name of the rule that drops them. */
async function nameRule(
  loss: RemoteLoss,
  { question, there, here, config, clock }: Tracing,
  signal: AbortSignal,
): Promise<RemoteLoss> {
  const watch = pathOf(question, { ...config, seconds: traceSeconds, probes: 0 });
  const traced = askAgent<WhyAnswer>(there, `${watch}&trace=true`, { method: 'GET', signal });
  await clock.sleep(traceBegin, signal);
  await askAgent<WhyAnswer>(here, pathOf(question, config), { method: 'PUT', signal });
  const { losses = [] } = await traced;
  const named = losses.find(({ cause }) => cause === loss.cause);
  return named === undefined ? loss : { ...loss, ...named, node: loss.node };
}

/** Longer than the probes, which wait 1.5 s for an answer. */
const traceSeconds = 3;
/** Time until the other node traces. */
const traceBegin = millis(500);

function beyond(answer: WhyAnswer, { from }: Question, loss: RemoteLoss): WhyAnswer {
  const hook = loss.where?.hook === undefined ? '' : `, at the hook ${loss.where.hook}`;
  return {
    ...answer,
    verdict: 'lost',
    where: `node ${loss.node}, in the namespace of the ${loss.where?.netns}${hook}`,
    why: `${shareText(answer.probes)}${loss.why} [${loss.cause}, kernel: ${loss.reason}]`,
    advice: loss.advice ?? '',
    certainty: loss.client === from ? (loss.certainty ?? 'likely') : 'likely',
  };
}

/** Share of the unanswered probes; empty if none was answered. */
function shareText(probes: WhyAnswer['probes']): string {
  const unanswered = probes.filter(({ status }) => status !== 'answered').length;
  return unanswered === probes.length ? '' : `${unanswered} of ${probes.length} probes: `;
}

function text(
  { from, to, port, protocol }: Question,
  { verdict, where, why, advice, certainty, service }: WhyAnswer,
): string {
  const target = `${to}:${port}/${protocol}`;
  return [
    `${from} -> ${target}${service === undefined ? '' : ` (${service})`}`,
    `verdict  ${verdict}`,
    `where    ${where}`,
    `why      ${why}`,
    `change   ${advice}`,
    `sure     ${certainty}`,
    '',
  ].join('\n');
}

async function ofPod(context: CommandContext, signal: AbortSignal): Promise<Question> {
  const { config } = context;
  const [podName = '', serviceText = ''] = config.operands;
  const pod = await get<Pod>(context, 'pod', podName, signal);
  const { address: to, port } = await serviceTarget(context, serviceText, signal);
  const addresses =
    pod.status.podIPs?.map(({ ip }) => ip) ?? (pod.status.podIP === undefined ? [] : [pod.status.podIP]);
  const from = addresses.find((address) => address.includes(':') === to.includes(':'));
  if (from === undefined)
    throw new HostError(
      'why.pod',
      `pod ${podName} has no address of the family of ${to}: ${addresses.join(', ') || 'none'}`,
    );
  return { from, to, port, protocol: config.protocol, node: pod.spec.nodeName, source: 'pod' };
}

async function fromOutside(context: CommandContext, address: string, signal: AbortSignal): Promise<Question> {
  const { config } = context;
  const [serviceText = ''] = config.operands;
  const { service, port: entry } = await readService(context, serviceText, signal);
  const ingress = service.status?.loadBalancer?.ingress?.find(({ ip }) => ip !== undefined)?.ip;
  const frontend =
    ingress === undefined
      ? await nodePortOf(context, { serviceText, nodePort: entry.nodePort }, signal)
      : { to: ingress, port: entry.port };
  return { from: address, ...frontend, protocol: config.protocol, node: config.node, source: 'outside' };
}

/** Address of the named node with a NodePort, for a Service without a load balancer. */
async function nodePortOf(
  context: CommandContext,
  { serviceText, nodePort }: { readonly serviceText: string; readonly nodePort: number | undefined },
  signal: AbortSignal,
): Promise<Pick<Question, 'to' | 'port'>> {
  const { node: name, fromOutside: client = '' } = context.config;
  if (nodePort === undefined || name === undefined) {
    const next = nodePort === undefined ? 'and no NodePort' : 'name a node with --node to use its NodePort';
    throw new HostError('why.outside', `Service ${serviceText} has no load-balancer IP in its status; ${next}`);
  }
  const { status } = await get<Node>(context, 'node', name, signal);
  const to = status.addresses?.find(
    ({ type, address }) => type === 'InternalIP' && address.includes(':') === client.includes(':'),
  )?.address;
  if (to === undefined) throw new HostError('why.outside', `node ${name} has no InternalIP of the family of ${client}`);
  return { to, port: nodePort };
}

async function serviceTarget(
  context: CommandContext,
  given: string,
  signal: AbortSignal,
): Promise<{ address: string; port: number }> {
  const { service, port } = await readService(context, given, signal);
  const address = service.spec.clusterIP;
  if (address === undefined || address === 'None' || address === '') {
    throw new HostError(
      'why.headless',
      `Service ${given} has no cluster IP: no proxy forwards it; its clients use the addresses of pods`,
    );
  }
  return { address, port: port.port };
}

type ServicePortEntry = NonNullable<Service['spec']['ports']>[number];

/** `SERVICE[:PORT]`: PORT is a number or a name; default: the only one of the protocol. */
async function readService(
  context: CommandContext,
  given: string,
  signal: AbortSignal,
): Promise<{ readonly service: Service; readonly port: ServicePortEntry }> {
  const [name = '', wanted] = given.split(':', 2);
  const service = await get<Service>(context, 'service', name, signal);
  const { protocol } = context.config;
  const ports = (service.spec.ports ?? []).filter((port) => (port.protocol ?? 'TCP') === protocol);
  const matching =
    wanted === undefined ? ports : ports.filter(({ name: own, port }) => own === wanted || String(port) === wanted);
  const [port] = matching;
  const all = ports.map((one) => `${one.name ?? ''}:${one.port}`).join(', ') || 'none';
  if (port === undefined)
    throw new ConfigError('why.port', `Service ${name} has no ${protocol} port ${wanted ?? ''}; it has ${all}`);
  if (matching.length > 1)
    throw new ConfigError('why.ports', `Service ${name} has several ${protocol} ports: ${all}; write ${name}:PORT`);
  return { service, port };
}

async function get<T>(
  { config, kubectl }: CommandContext,
  kind: string,
  name: string,
  signal: AbortSignal,
): Promise<T> {
  const namespace = config.namespace === undefined ? [] : [`--namespace=${config.namespace}`];
  return JSON.parse(await kubectl.run(['get', kind, name, ...namespace, '--output=json'], signal)) as T;
}
