import { kubeadmFileOf, kubeadmMinors } from './kubeadm-file.ts';

/** How an installer starts kube-proxy. */
export interface CorpusEntry {
  readonly name: string;
  /** The configuration file, if it writes one. */
  readonly file?: string;
  readonly flags?: readonly string[];
  /** Messages of warnings that its configuration gets, besides those about the mode. Default: none. */
  readonly warnings?: readonly string[];
}

/** The kubeadm file of a release with some lines changed; throws if one is not there. */
function changed(minor: number, changes: Readonly<Record<string, string>>): string {
  let text = kubeadmFileOf(minor);
  for (const [old, now] of Object.entries(changes)) {
    if (!text.includes(old)) throw new Error(`the file of kubeadm 1.${minor} has no ${old}`);
    text = text.replace(old, now);
  }
  return text;
}

/** A kind cluster's file (pkg/cluster/internal/kubeadm/config.go of kubernetes-sigs/kind); kubeadm fills in the rest. */
function kindFile(minor: number, mode: string, more: Readonly<Record<string, string>> = {}): string {
  const iptables = (least: string): string =>
    `  localhostNodePorts: null\n  masqueradeAll: false\n  masqueradeBit: null\n  minSyncPeriod: ${least}\n`;
  const always = { [iptables('0s')]: iptables('1s'), 'maxPerCore: null': 'maxPerCore: 0' };
  return withMode(changed(minor, { ...always, ...more }), mode);
}

/** A file with another mode; the mode is added if the file has none. */
export function withMode(file: string, mode: string): string {
  const line = `mode: ${mode}`;
  return /^mode:/m.test(file) ? file.replace(/^mode:.*$/m, line) : `${file}${line}\n`;
}

const kubeadm: readonly CorpusEntry[] = [
  ...kubeadmMinors.map((minor) => ({ name: `kubeadm 1.${minor}`, file: kubeadmFileOf(minor) })),
  ...kubeadmMinors.map((minor) => ({
    name: `kubeadm 1.${minor}, both IP families`,
    file: changed(minor, { '10.244.0.0/16': '10.244.0.0/16,fd00:10:244::/56' }),
  })),
  {
    name: 'kubeadm 1.37 with an API server on IPv6',
    file: changed(37, { 'bindAddress: 0.0.0.0': 'bindAddress: "::"', '10.244.0.0/16': 'fd00:10:244::/56' }),
  },
  {
    name: 'kubeadm 1.36 without a pod network',
    file: changed(36, { 'clusterCIDR: 10.244.0.0/16': 'clusterCIDR: ""' }),
  },
];

const kind: readonly CorpusEntry[] = [
  ...kubeadmMinors.map((minor) => ({ name: `kind 1.${minor}`, file: kindFile(minor, 'iptables') })),
  {
    name: 'kind 1.37 with nftables',
    file: kindFile(37, 'nftables', { 'tcpBeLiberal: false': 'tcpBeLiberal: true' }),
  },
  {
    name: 'kind 1.36 without root',
    file: kindFile(36, 'iptables', {
      'tcpEstablishedTimeout: null': 'tcpEstablishedTimeout: 0s',
      'tcpCloseWaitTimeout: null': 'tcpCloseWaitTimeout: 0s',
      'healthzBindAddress:': 'featureGates:\n  KubeletInUserNamespace: true\nhealthzBindAddress:',
    }),
  },
  {
    name: 'kind 1.38 with gates of the cluster and NodePorts on loopback',
    file: kindFile(38, 'nftables', {
      'nodePortAddresses: null': 'nodePortAddresses:\n- primary\n- localhost',
      'healthzBindAddress:':
        'featureGates:\n  KubeProxyNFTablesLocalhostNodePorts: true\n  NFTablesNetlink: true\n  KubeProxyIPVS: true\nhealthzBindAddress:',
    }),
  },
];

/** pkg/minikube/bootstrapper/bsutil/ktmpl/v1beta4.go of kubernetes/minikube; kubeadm fills in the rest. */
const minikube = changed(36, {
  'maxPerCore: null': 'maxPerCore: 0',
  'tcpEstablishedTimeout: null': 'tcpEstablishedTimeout: 0s',
  'tcpCloseWaitTimeout: null': 'tcpCloseWaitTimeout: 0s',
  'metricsBindAddress: ""': 'metricsBindAddress: 0.0.0.0:10249',
});

/**
 * roles/kubernetes/control-plane/templates/kubeadm-config.v1beta4.yaml.j2 of kubernetes-sigs/kubespray, which sets
 * kube-proxy's own defaults; kubeadm fills in the rest. Its mode is ipvs unless changed.
 */
const kubespray = changed(36, {
  'burst: 0': 'burst: 10',
  'qps: 0': 'qps: 5',
  'contentType: ""': 'contentType: application/vnd.kubernetes.protobuf',
  'configSyncPeriod: 0s': 'configSyncPeriod: 15m0s',
  'maxPerCore: null': 'maxPerCore: 32768',
  'min: null': 'min: 131072',
  'tcpEstablishedTimeout: null': 'tcpEstablishedTimeout: 24h0m0s',
  'tcpCloseWaitTimeout: null': 'tcpCloseWaitTimeout: 1h0m0s',
  'healthzBindAddress: ""': 'healthzBindAddress: 0.0.0.0:10256',
  'metricsBindAddress: ""': 'metricsBindAddress: 127.0.0.1:10249',
  'hostnameOverride: ""': 'hostnameOverride: node1',
  'masqueradeBit: null': 'masqueradeBit: 14',
  'excludeCIDRs: null': 'excludeCIDRs: []',
  'scheduler: ""': 'scheduler: rr',
  'nodePortAddresses: null': 'nodePortAddresses: []',
  'oomScoreAdj: null': 'oomScoreAdj: -999',
  'mode: ""': 'mode: nftables',
});

/** The ConfigMap of EKS as users post it. `udpIdleTimeout` is of the userspace mode, which is gone. */
const eks = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
clientConnection:
  acceptContentTypes: ""
  burst: 10
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: /var/lib/kube-proxy/kubeconfig
  qps: 5
clusterCIDR: ""
configSyncPeriod: 15m0s
conntrack:
  maxPerCore: 32768
  min: 131072
  tcpCloseWaitTimeout: 1h0m0s
  tcpEstablishedTimeout: 24h0m0s
enableProfiling: false
healthzBindAddress: 0.0.0.0:10256
hostnameOverride: ""
iptables:
  masqueradeAll: false
  masqueradeBit: 14
  minSyncPeriod: 0s
  syncPeriod: 30s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  syncPeriod: 30s
kind: KubeProxyConfiguration
metricsBindAddress: 0.0.0.0:10249
mode: "iptables"
nodePortAddresses: null
oomScoreAdj: -998
portRange: ""
udpIdleTimeout: 250ms
`;

const lenient = 'using lenient decoding as strict decoding failed';

const others: readonly CorpusEntry[] = [
  { name: 'minikube 1.36', file: minikube },
  { name: 'kubespray 1.36', file: kubespray },
  {
    name: 'EKS',
    file: eks,
    flags: ['--v=2', '--hostname-override=ip-10-0-0-1.ec2.internal'],
    warnings: [lenient],
  },
  {
    name: 'EKS on Bottlerocket', // the two flags do nothing beside a file, in kube-proxy too
    file: eks,
    flags: ['--v=2', '--conntrack-max-per-core=0', '--conntrack-min=0'],
    warnings: ['flags have no effect beside --config', lenient],
  },
  {
    name: 'k3s', // pkg/daemons/agent/agent_linux.go of k3s-io/k3s
    flags: [
      '--cluster-cidr=10.42.0.0/16,2001:cafe:42::/56',
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-close-wait=0s',
      '--conntrack-tcp-timeout-established=0s',
      '--healthz-bind-address=127.0.0.1',
      '--hostname-override=node1',
      '--kubeconfig=/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig',
      '--proxy-mode=iptables',
    ],
  },
  {
    name: 'kOps',
    flags: [
      '--cluster-cidr=100.96.0.0/11',
      '--conntrack-max-per-core=131072',
      '--hostname-override=i-0e30debd74ba1ecdd',
      '--kubeconfig=/var/lib/kube-proxy/kubeconfig',
      '--master=https://127.0.0.1',
      '--oom-score-adj=-998',
      '--v=2',
    ],
  },
  {
    name: 'GKE', // as cluster/gce/gci/configure-helper.sh of kubernetes/kubernetes
    flags: [
      '--master=https://192.0.2.10',
      '--kubeconfig=/var/lib/kube-proxy/kubeconfig',
      '--cluster-cidr=10.8.0.0/14',
      '--oom-score-adj=-998',
      '--v=2',
      '--feature-gates=RotateKubeletServerCertificate=true,ExecProbeTimeout=false',
      '--iptables-sync-period=1m',
      '--iptables-min-sync-period=10s',
      '--ipvs-sync-period=1m',
      '--ipvs-min-sync-period=10s',
      '--detect-local-mode=NodeCIDR',
    ],
  },
  {
    name: 'AKS with kubenet',
    flags: [
      '--conntrack-max-per-core=0',
      '--metrics-bind-address=0.0.0.0:10249',
      '--cluster-cidr=10.244.0.0/16',
      '--detect-local-mode=ClusterCIDR',
      '--pod-interface-name-prefix=',
      '--v=3',
    ],
  },
  {
    name: 'AKS with Azure CNI',
    flags: [
      '--conntrack-max-per-core=0',
      '--metrics-bind-address=0.0.0.0:10249',
      '--cluster-cidr=10.251.0.0/16',
      '--detect-local-mode=InterfaceNamePrefix',
      '--pod-interface-name-prefix=azv',
      '--v=3',
    ],
  },
];

/** Configurations of kube-proxy 1.26 to 1.38 as installers write them. ipvs is left out: the agent refuses it. */
export const corpus: readonly CorpusEntry[] = [...kubeadm, ...kind, ...others];
