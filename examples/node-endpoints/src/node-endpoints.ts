import {
  buildTable,
  ClusterState,
  type Decision,
  type Endpoint,
  type Frontend,
  type ForwardingTable,
  type IpFamily,
  ipFamilies,
  nodeName,
  parseCidr,
  type ServiceForwarding,
  sourceClasses,
} from '@switchyard/core';
import { type Manifest, readManifest } from '@switchyard/core/manifests';

/** The question. */
export interface Question {
  /** Output of `kubectl get services,endpointslices,nodes -A -o yaml`. */
  readonly yaml: string;
  /** Name of a Node in it. */
  readonly node: string;
}

/** Error in the question, in words; there is no answer. */
export class QuestionError extends Error {}

/** Which endpoints a node would use, for every Service port: a line per frontend and kind of sender that differ. */
export function nodeEndpoints({ yaml, node }: Question): string {
  const manifest = readManifest(yaml);
  checkManifest(manifest, node);
  const state = new ClusterState({ nodeName: nodeName(node) });
  // Core treats a folder of files, a watch and a list alike: as events.
  state.apply(manifest.objects);
  const lines = ipFamilies.flatMap((ipFamily) => tableLines(tableFor(state, node, ipFamily)));
  return lines.length === 0 ? 'no Service in this input has anything to forward\n' : `${lines.join('\n')}\n`;
}

function checkManifest({ objects, faults }: Manifest, node: string): void {
  if (faults.length > 0) {
    const all = faults.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`);
    throw new QuestionError(`the input cannot be used:\n${all.join('\n')}`);
  }
  const nodes = objects.filter(({ resource }) => resource === 'Node').map(({ name }) => name);
  if (nodes.includes(node)) return;
  const there = nodes.length === 0 ? 'it holds no Node; add nodes to `kubectl get`' : `its Nodes: ${nodes.join(', ')}`;
  throw new QuestionError(`there is no Node '${node}' in the input; ${there}`);
}

/** As kube-proxy without flags: pods are not distinguished from the outside without a cluster CIDR. */
function tableFor(state: ClusterState, node: string, ipFamily: IpFamily): ForwardingTable {
  const everything = parseCidr(ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0');
  return buildTable(state, 'all', undefined, {
    ipFamily,
    nodeName: nodeName(node),
    masqueradeAll: false,
    terminatingFallback: 'on',
    externalIps: 'forward',
    podDetector: { kind: 'none' },
    nodePortCidrs: [everything],
  });
}

function tableLines({ services, ipFamily }: ForwardingTable): readonly string[] {
  return [...services.values()].flatMap((service) => [
    `${service.key} (${ipFamily})`,
    ...service.frontends.flatMap((frontend) => frontendLines(service, frontend)),
  ]);
}

/** Senders with the same answer share a line. */
function frontendLines(service: ServiceForwarding, frontend: Frontend): readonly string[] {
  const { kind, address, port, decisions } = frontend;
  const where = `${kind} ${address === 'anyNodePortAddress' ? 'any node address' : address} port ${port}`;
  const senders = sourceClasses.filter((source) => source !== 'pod'); // without a detector pods are outside
  const byAnswer = Map.groupBy(senders, (source) => answerText(service, decisions[source]));
  return [...byAnswer].map(([answer, from]) => {
    const who = from.length === senders.length ? 'from everywhere' : `from ${from.join(' and ')}`;
    return `  ${where}, ${who}: ${answer}`;
  });
}

function answerText({ endpoints }: ServiceForwarding, decision: Decision): string {
  if (decision.kind === 'reject') return 'refused, there is no endpoint anywhere';
  if (decision.kind === 'drop') return 'dropped, there is no endpoint on this node';
  return endpoints[decision.to].map(endpointText).join(', ');
}

function endpointText({ address, port, isLocal, nodeName: on, terminating }: Endpoint): string {
  const where = isLocal ? 'this node' : (on ?? 'an unknown node');
  return `${address} port ${port} (${where}${terminating ? ', terminating' : ''})`;
}
