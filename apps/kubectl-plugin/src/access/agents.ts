import { ConfigError, HostError, messageOf } from '@switchyard/core';
import { forwardPort } from './forward-port.ts';
import type { Kubectl } from './kubectl.ts';

/** One node's agent, with the address at which this program reaches its metrics server. */
export interface Agent {
  readonly node: string;
  readonly url: string;
}

/** Agents that answer, and why others do not. */
export interface FoundAgents extends Disposable {
  readonly agents: readonly Agent[];
  /** One sentence per pod that is no agent, or cannot be reached. */
  readonly problems: readonly string[];
}

/** How to find agents. */
export interface AgentQuery {
  /** `NODE=URL`: use these, and no kubectl. */
  readonly given: readonly string[];
  readonly namespace: string;
  /** Default: the labels of Switchyard's manifests, else kube-proxy's, in whose place an agent may run. */
  readonly selector: string | undefined;
  /** Port of the metrics server in the pod. Default: 10249, of observers 10239. */
  readonly port: number | undefined;
  /** Only agents of these nodes; undefined: of all. */
  readonly nodes?: readonly string[] | undefined;
}

type Pod = PodList['items'][number];

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
    readonly spec: { readonly nodeName?: string };
    readonly status: { readonly phase?: string };
  }[];
}

const defaultSelectors: readonly string[] = [
  'app.kubernetes.io/name=switchyard,app.kubernetes.io/component!=drain-gate',
  'k8s-app=kube-proxy',
];

/** Parallel port forwards: each is a process. */
const maxParallel = 8;

/** Finds agents by their pods and forwards a local port to each. Rejects with `HostError` if none can be reached. */
export async function findAgents(query: AgentQuery, kubectl: Kubectl, signal: AbortSignal): Promise<FoundAgents> {
  if (query.given.length > 0)
    return { agents: query.given.map(parseAgent), problems: [], [Symbol.dispose]: () => undefined };
  const selectors = query.selector === undefined ? defaultSelectors : [query.selector];
  const pods = await firstPods(query, { selectors, kubectl }, signal);
  if (pods.length === 0) {
    const where = `namespace ${query.namespace}, selector ${selectors.join(' or ')}`;
    throw new HostError('agents.none', `no running pod of an agent (${where}); set --agent-namespace or --selector`);
  }
  using stack = new DisposableStack();
  const agents: Agent[] = [];
  const problems: string[] = [];
  const forward = async ({ metadata: { name, labels }, spec: { nodeName = '?' } }: Pod): Promise<void> => {
    const port = query.port ?? (labels?.['app.kubernetes.io/component'] === 'observer' ? 10_239 : 10_249);
    try {
      const place = { namespace: query.namespace, pod: name, port };
      const { url } = stack.use(await forwardPort(place, kubectl, signal));
      agents.push({ node: nodeName, url });
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`${nodeName}: ${messageOf(error)}`);
    }
  };
  for (let at = 0; at < pods.length; at += maxParallel)
    await Promise.all(pods.slice(at, at + maxParallel).map(forward));
  if (agents.length === 0) throw new HostError('agents.unreachable', `no agent can be reached: ${problems.join('; ')}`);
  const owned = stack.move();
  return {
    agents: agents.toSorted((a, b) => (a.node < b.node ? -1 : 1)),
    problems,
    [Symbol.dispose]: () => owned.dispose(),
  };
}

interface PodSearch {
  readonly selectors: readonly string[];
  readonly kubectl: Kubectl;
}

/** Running pods of the first selector that has some. */
async function firstPods(
  { namespace, nodes }: AgentQuery,
  { selectors, kubectl }: PodSearch,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  for (const selector of selectors) {
    const args = ['get', 'pods', `--namespace=${namespace}`, `--selector=${selector}`, '--output=json'];
    const { items } = JSON.parse(await kubectl.run(args, signal)) as PodList;
    const pods = items.filter(
      ({ spec, status }) => status.phase === 'Running' && (nodes === undefined || nodes.includes(spec.nodeName ?? '')),
    );
    if (pods.length > 0) return pods;
  }
  return [];
}

function parseAgent(text: string): Agent {
  const [, node, url] = /^([^=]+)=(https?:\/\/.+)$/.exec(text) ?? [];
  if (node === undefined || url === undefined) {
    throw new ConfigError(
      'config.agent',
      `--agent ${JSON.stringify(text)} is not NODE=URL, such as node1=http://10.0.0.1:10249`,
    );
  }
  return { node, url: url.replace(/\/$/, '') };
}
