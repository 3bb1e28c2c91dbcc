import { kubeProxyDefault } from '@switchyard/scenarios';
import { ConfigError } from '@switchyard/core';
import type { KubeProxyMode } from './steps/cluster.ts';

type BlockPlan =
  | {
      readonly kind: 'run';
      /** The beginning of this block, and of no other one of the page. */
      readonly begins: string;
      /** On the machine in the checkout's folder, or in the shell of a worker node. */
      readonly on: 'machine' | 'worker';
      /**
       * Texts of the block and what stands in their place: `{cluster}`, `{image}` (of the nodes), `{folder}` (of the results),
       * `{worker}`, `{controller}` (name of its container), `{imageFlags}` (of `./dev image`),
       * `{apiFlags}` (for an engine that takes no older Docker program, as the page says).
       */
      readonly replace?: readonly (readonly [text: string, by: string])[];
      /** What `kubectl edit` does: a command that gets the file as its last argument. */
      readonly editor?: string;
    }
  | { readonly kind: 'leftOut'; readonly begins: string; readonly because: string };

/** A page whose blocks are run on a cell. */
export interface PagePlan {
  readonly page: string;
  /** kube-proxy of the cluster that the page begins with; `page`: the page makes the cluster itself. */
  readonly cluster: KubeProxyMode | 'page';
  /** Commands of the reader before the first block. */
  readonly before?: string;
  /** Plans of blocks in the order in which they run. */
  readonly blocks: readonly BlockPlan[];
}

const machine = { kind: 'run', on: 'machine' } as const;
const worker = { kind: 'run', on: 'worker' } as const;
const leftOut = { kind: 'leftOut' } as const;

/** docs/operate/kind.md: a cluster of the reader's own, from its creation to its end. */
const kindPage: PagePlan = {
  page: 'docs/operate/kind.md',
  cluster: 'page',
  blocks: [
    {
      ...machine,
      begins: './dev image --backend nftables',
      replace: [['./dev image', './dev image{imageFlags}']],
    },
    {
      ...machine,
      begins: 'kind create cluster --config -',
      replace: [['kind create cluster --config -', 'kind create cluster --image {image} --retain --config -']],
    },
    {
      ...machine,
      begins: 'helm install switchyard',
      replace: [['https://kind-control-plane:6443', 'https://{cluster}-control-plane:6443']],
    },
    {
      ...leftOut,
      begins: 'mode=ebpf',
      because: 'the cluster has an agent from Helm already; a test of the manifests runs these commands',
    },
    {
      ...leftOut,
      begins: 'kind load docker-image switchyard/agent-iptables:0.1.0',
      because: 'it is for a cluster with kube-proxy; the migration guide swaps the image on one',
    },
    {
      ...machine,
      begins: 'docker run -d --name switchyard-lb --network kind --restart',
      replace: [
        [
          '--name switchyard-lb',
          '--name {controller} --hostname {controller} --label dev.switchyard.e2e.cluster={cluster}{apiFlags}',
        ],
        ['switchyard/kind-lb-controller:0.1.0', 'switchyard/kind-lb-controller:0.1.0 --cluster {cluster}'],
        ['docker logs -f switchyard-lb', 'docker logs {controller}'],
      ],
    },
    { ...leftOut, begins: 'apps/kind-lb-controller/bin/switchyard-lb\n', because: 'a controller runs as a container' },
    {
      ...machine,
      begins: 'kubectl apply -f packages/lab/examples/zeroapp.yaml',
      replace: [
        [
          'kubectl get service zeroapp --watch',
          // `--watch` does not end, and kubectl before 1.31 can not wait for a field that has any value.
          `for i in $(seq 180); do [ -z "$(kubectl get service zeroapp -o jsonpath='{.status.loadBalancer.ingress}')" ] || break; sleep 1; done\n` +
            'kubectl rollout status deployment zeroapp --timeout=3m',
        ],
      ],
    },
    { ...machine, begins: 'curl http://$(kubectl', replace: [['curl http', 'curl --fail --max-time 10 http']] },
    { ...machine, begins: 'apps/kind-lb-controller/bin/switchyard-lb check zeroapp' },
    { ...machine, begins: 'ADDRESS=$(kubectl get service zeroapp' },
    { ...machine, begins: 'kubectl annotate --overwrite service zeroapp' },
    {
      ...leftOut,
      begins: 'docker run -d --name switchyard-lb --network kind -v',
      because: 'it starts a second controller for the same clusters',
    },
    {
      ...machine,
      begins: 'kubectl delete service zeroapp',
      replace: [['docker rm -f switchyard-lb', 'docker rm -f {controller}']],
    },
  ],
};

const swap = `kubectl -n kube-system patch daemonset kube-proxy -p '{"spec":{"template":{"spec":{"containers":[{"name":"kube-proxy","image":`;

/** docs/operate/migrate.md on a cluster as kubeadm makes it: there, back, and beside kube-proxy. */
const migratePage: PagePlan = {
  page: 'docs/operate/migrate.md',
  cluster: kubeProxyDefault.name,
  blocks: [
    {
      ...machine,
      begins: 'kubectl -n kube-system get configmap/kube-proxy',
      replace: [['> kube-proxy-before.yaml', '> {folder}/kube-proxy-before.yaml']],
    },
    {
      ...machine,
      begins: 'kubectl -n kube-system edit configmap kube-proxy',
      editor: `sed -i 's/^\\( *mode:\\) .*/\\1 nftables/'`,
    },
    {
      ...machine,
      begins: `kubectl -n kube-system patch daemonset kube-proxy --type merge -p '{"spec":{"updateStrategy":{"type":"OnDelete"`,
    },
    { ...machine, begins: `${swap}"switchyard/agent-nftables:0.1.0"` },
    {
      ...leftOut,
      begins: `${swap}"switchyard/agent-iptables:0.1.0"`,
      because: 'the block before swaps to the other mode',
    },
    { ...machine, begins: 'kubectl -n kube-system delete pod -l k8s-app=kube-proxy', replace: [['node1', '{worker}']] },
    { ...machine, begins: 'kubectl -n kube-system rollout status daemonset/kube-proxy' },
    { ...machine, begins: 'kubectl -n kube-system get pods -l k8s-app=kube-proxy' },
    { ...worker, begins: 'curl -s http://127.0.0.1:10249/proxyMode' },
    { ...worker, begins: "curl -s 'http://127.0.0.1:10249/debug/explain" },
    { ...machine, begins: 'kubectl -n kube-system rollout undo daemonset/kube-proxy' },
    { ...machine, begins: 'kubectl apply -k deploy/kustomize/overlays/clean-up' },
    { ...leftOut, begins: '/usr/local/bin/kube-proxy --cleanup', because: 'the block before cleans up on all nodes' },
    { ...machine, begins: 'kubectl apply -k deploy/kustomize/overlays/nftables', replace: [['node1', '{worker}']] },
  ],
};

/** deploy/README.md in the place of kubeadm's DaemonSet. */
const deployPage: PagePlan = {
  page: 'deploy/README.md',
  cluster: kubeProxyDefault.name,
  before: 'kubectl -n kube-system delete daemonset kube-proxy',
  blocks: [
    { ...machine, begins: 'kubectl apply -k deploy/kustomize/overlays/nftables' },
    {
      ...leftOut,
      begins: 'helm install switchyard',
      because: 'the DaemonSet is there already; docs/operate/kind.md installs by Helm',
    },
  ],
};

/** All pages, in the order in which they run. */
export const pagePlans: readonly PagePlan[] = [kindPage, migratePage, deployPage];

export interface PlannedBlock {
  readonly block: PageBlock;
  readonly plan: BlockPlan;
}

/** Values of the placeholders in substitutions. */
export type PlaceValues = Readonly<
  Record<'cluster' | 'image' | 'folder' | 'worker' | 'controller' | 'imageFlags' | 'apiFlags', string>
>;

/**
 * The blocks of a page in the order of its plan. Throws `ConfigError` with page and line for a block that the plan does not know, an entry that
 * no block fits, and one that several fit.
 */
export function planPage({ page, blocks: plans }: PagePlan, text: string): readonly PlannedBlock[] {
  const blocks = blocksOf(page, text);
  const planned = plans.map((plan) => {
    const [block, another] = blocks.filter(({ text: commands }) => commands.startsWith(plan.begins));
    if (block === undefined) throw wrong(`${page} has no block that begins with ${JSON.stringify(plan.begins)}`);
    if (another !== undefined)
      throw wrong(`${page}:${block.line} and :${another.line} both begin with ${JSON.stringify(plan.begins)}`);
    return { block, plan };
  });
  const unknown = blocks.find((block) => !planned.some((one) => one.block === block));
  if (unknown !== undefined) throw wrong(`${page}:${unknown.line}: no entry is for this block`);
  return planned;
}

/** The commands of a block as they are run. Throws `ConfigError` for a substitution whose text the block does not have. */
export function commandsOf({ block, plan }: PlannedBlock, values: PlaceValues): string {
  const filled = (text: string): string =>
    text.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
      name in values ? values[name as keyof PlaceValues] : whole,
    );
  const replace = plan.kind === 'run' ? (plan.replace ?? []) : [];
  return replace.reduce((text, [from, to]) => {
    if (text.includes(from)) return text.replaceAll(from, filled(to));
    throw wrong(
      `${block.page}:${block.line}: a substitution is for ${JSON.stringify(from)}, which the block does not have`,
    );
  }, block.text);
}

function wrong(what: string): ConfigError {
  return new ConfigError('e2e.page', `${what}; correct e2e/src/pages.ts`);
}

/** A block of shell commands in a page of the documentation. */
export interface PageBlock {
  /** `docs/operate/kind.md`. */
  readonly page: string;
  /** Line of its first command, from 1. */
  readonly line: number;
  readonly text: string;
}

/** All blocks of a page that begin with three backquotes and `sh`, in their order; a word after `sh` changes nothing. */
export function blocksOf(page: string, text: string): readonly PageBlock[] {
  return [...text.matchAll(/^```sh\b[^\n]*\n([^]*?)^```$/gm)].map((found) => ({
    page,
    line: text.slice(0, found.index).split('\n').length + 1,
    text: found[1] ?? '',
  }));
}
