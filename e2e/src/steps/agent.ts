import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { seconds } from '@switchyard/core';
import type { Step } from '../run/run-steps.ts';
import { commandText, mustRun, nodeProgram } from '../run/shell.ts';
import { type CellContext, kubectl } from './cell-context.ts';
import { podSubnets } from './cluster.ts';

/** Applies the manifests of `deploy/` and waits until every node's rules were written. */
export function installAgent(context: CellContext): Step {
  const { shell, folder, cell } = context;
  const timeout = seconds(420);
  return {
    name: `install the agent, mode ${cell.backend}`,
    timeout,
    advice: 'see what its pods say: diagnostics/pods.txt and diagnostics/agent-*.log',
    run: async (signal) => {
      if (!shell.isDry) await writeManifests(context);
      const apply = { ...kubectl(context, 'apply', '-k', `${folder}/manifests`), timeout };
      await mustRun(shell, apply, 'the API server did not take the manifests', signal);
      const rollout = ['-n', 'kube-system', 'rollout', 'status', 'daemonset/switchyard', '--timeout=400s'];
      await mustRun(shell, { ...kubectl(context, ...rollout), timeout }, 'the agent is not ready on all nodes', signal);
    },
  };
}

/** Waits for what needs Services: pods that talk to the API server by its Service's address, CoreDNS for one. */
export function awaitNodes(context: CellContext): Step {
  const { shell } = context;
  const timeout = seconds(420);
  return {
    name: 'wait until the nodes are Ready and CoreDNS answers',
    timeout,
    advice:
      'see diagnostics/events.txt and diagnostics/pods.txt; CoreDNS that is not ready most often cannot reach the Service kubernetes',
    run: async (signal) => {
      const nodes = ['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=300s'];
      await mustRun(shell, { ...kubectl(context, ...nodes), timeout }, 'not all nodes are Ready', signal);
      const dns = ['-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=300s'];
      await mustRun(shell, { ...kubectl(context, ...dns), timeout }, 'CoreDNS is not ready', signal);
    },
  };
}

/**
 * The overlay of the cell's backend, with the ConfigMap that kubeadm would have made. Exported for tests: `kubectl kustomize` renders
 * what it wrote.
 */
export async function writeManifests(
  context: Pick<CellContext, 'cell' | 'cluster' | 'folder' | 'checkout'>,
): Promise<void> {
  const { cell, cluster, folder, checkout } = context;
  const target = join(folder, 'manifests');
  await mkdir(target, { recursive: true });
  const overlay = relative(target, join(checkout, 'deploy/kustomize/overlays', cell.backend));
  await writeFile(join(target, 'kustomization.yaml'), kustomization(overlay));
  await writeFile(join(target, 'config.conf'), proxyConfiguration(context));
  await writeFile(join(target, 'kubeconfig.conf'), agentKubeconfig(cluster));
}

/** Says `bases`, as `deploy/` does for old kubectl. */
function kustomization(overlay: string): string {
  return `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: kube-system
bases:
  - ${overlay}
configMapGenerator:
  - name: kube-proxy
    files:
      - config.conf
      - kubeconfig.conf
generatorOptions:
  disableNameSuffixHash: true
`;
}

/** All nodes share the machine's connection tracking: its size stays as it is, as kind does it for kube-proxy. */
function proxyConfiguration({ cell }: Pick<CellContext, 'cell'>): string {
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${cell.backend}
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
clusterCIDR: ${podSubnets[cell.ipFamily]}
oomScoreAdj: -997
conntrack:
  maxPerCore: 0
`;
}

/** The API server by the control plane's own name, which Docker resolves on every node: its Service answers only once an agent runs. */
function agentKubeconfig(cluster: string): string {
  return `apiVersion: v1
kind: Config
clusters:
  - name: default
    cluster:
      certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      server: https://${cluster}-control-plane:6443
contexts:
  - name: default
    context: { cluster: default, namespace: default, user: default }
current-context: default
users:
  - name: default
    user:
      tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
`;
}

export interface CellImage {
  /** Name in `./dev image`. */
  readonly name: string;
  readonly args: readonly string[];
  /** App whose version its tag has. */
  readonly app: string;
  /** Kind's nodes need it; the others run beside the nodes. */
  readonly isForNodes: boolean;
}

export function imagesOf({ cell }: Pick<CellContext, 'cell'>): readonly CellImage[] {
  const { backend } = cell;
  const agent = {
    name: `agent-${backend}`,
    args: ['agent', '--backend', backend],
    app: 'node-agent',
    isForNodes: true,
  };
  const conformance = { name: 'conformance', args: ['conformance'], app: 'conformance', isForNodes: true };
  const loadBalancer = ['load-balancer', 'kind-lb-controller'].map((name) => ({
    name,
    args: [name],
    app: 'kind-lb-controller',
    isForNodes: false,
  }));
  return [agent, conformance, ...(cell.loadBalancer === 'switchyard' ? loadBalancer : [])];
}

/** The tag that `./dev image` gives. */
export async function imageTag(checkout: string, { name, app }: CellImage): Promise<string> {
  const manifest = await readFile(join(checkout, 'apps', app, 'package.json'), 'utf8');
  return `switchyard/${name}:${(JSON.parse(manifest) as { readonly version: string }).version}`;
}

/** Builds each image once per call, for any number of cells. */
export function buildImages(context: CellContext): Step {
  return {
    name: 'build our images',
    timeout: seconds(1200),
    advice: 'build it by hand with ./dev image, as docs/operate/images.md says; without a registry add --local-base',
    run: async (signal) => {
      for (const image of imagesOf(context)) await buildImage(context, image, signal);
    },
  };
}

async function buildImage(context: CellContext, { name, args }: CellImage, signal: AbortSignal): Promise<void> {
  const { checkout, shell, isLocalBase, built } = context;
  const flags = isLocalBase ? ['--local-base'] : [];
  const program = nodeProgram(checkout, 'tools/images/image.ts', [...args, ...flags]);
  const command = { ...program, timeout: seconds(1200) };
  const key = commandText(command);
  if (built.has(key)) return;
  await mustRun(shell, command, `cannot build the image ${name}`, signal);
  built.add(key);
}

/** Puts images from the engine onto the cluster's nodes, which ask no registry for them. */
export function loadImages(context: CellContext): Step {
  const timeout = seconds(600);
  return {
    name: "load images onto the cluster's nodes",
    timeout,
    advice:
      'see whether the disk is full (docker system df), and that the image is there (docker image ls switchyard/*)',
    run: async (signal) => {
      const { shell, cluster, checkout } = context;
      const wanted = imagesOf(context).filter(({ isForNodes }) => isForNodes);
      const tags = await Promise.all(wanted.map((image) => imageTag(checkout, image)));
      const command = { file: 'kind', args: ['load', 'docker-image', ...tags, '--name', cluster], timeout };
      await mustRun(shell, command, `cannot load ${tags.join(', ')}`, signal);
    },
  };
}
