import type { Field, FieldType, Schema } from '../schema/field.ts';

/** A value that kube-proxy takes for a field, as YAML text. */
export interface LegalValue {
  readonly path: string;
  readonly text: string;
  /** Other fields that the value needs, as YAML text by path. */
  readonly beside?: Readonly<Record<string, string>>;
}

type Given = string | Omit<LegalValue, 'path'>;

const durations = ['0s', '1s', '1.5s', '1m30s', '24h0m0s', '1000ms', '2000000µs', '2000000us', '3000000000ns', '+5s'];
const quantities = ['"0"', '0', '512', '"4096"', '4Ki', '1k', '3M', '1.5Gi', '6Gi', '1e3', '"12E2"', '"1E"', '"100m"'];

/** Texts for every field of a type. Types without an entry have texts by field only. */
const textsByType: Readonly<Partial<Record<FieldType, readonly string[]>>> = {
  boolean: ['true', 'false', 'yes', 'off'],
  duration: durations,
  nanoseconds: ['0', '5000000000', '5s', '1m0s'],
  quantity: [...quantities, '"5n"', '".5"', '"5."', '"+1"', '"-1"'],
  gates: [
    '{}',
    '{ AllAlpha: false, AllBeta: true }',
    '{ NFTablesProxyMode: true, SidecarContainers: false }',
    '{ KubeProxyIPVS: true, NFTablesNetlink: true, KubeProxyNFTablesLocalhostNodePorts: false }',
    '{ NoKubernetesHasThis: true }',
  ],
  vmodule: ['[]', '[{ filePattern: "proxier*", verbosity: 4 }, { filePattern: server, verbosity: 0 }]'],
};

const addresses = (port: number): readonly string[] => [
  '""',
  `0.0.0.0:${port}`,
  `"[::]:${port}"`,
  '127.0.0.1:65535',
  '"[2001:db8::1]:1"',
  '127.0.0.1',
  '127.000.000.001',
  `010.0.0.010:${port}`,
  '"::1"',
];
const int32 = ['0', '1', '32768', '2147483647'];
const marks = ['0', '14', '31'];
const words = ['""', 'one', '"a text of words"'];
const lists = ['[]', '[10.96.0.0/12]', '["10.0.0.0/8", "2001:db8::/32"]'];
/** A period must not be shorter than the least one of the same mode. */
const periods = (stanza: string): readonly Given[] => [
  ...durations,
  { text: '100ms', beside: { [`${stanza}.minSyncPeriod`]: '100ms' } },
];
const leastPeriods = (stanza: string): readonly Given[] => [
  '0s',
  '100ms',
  '30s',
  { text: '1h', beside: { [`${stanza}.syncPeriod`]: '1h' } },
];

/** Texts of single fields; they take the place of those by type. */
const textsByPath: Readonly<Record<string, readonly Given[]>> = {
  hostnameOverride: ['""', 'node1', 'Node-1.Example', '" node1 "'],
  bindAddress: ['""', '0.0.0.0', '"::"', '192.0.2.7', '192.000.002.010', '"2001:db8::7"'],
  healthzBindAddress: addresses(10_256),
  metricsBindAddress: addresses(10_249),
  showHiddenMetricsForVersion: ['""', ...Array.from({ length: 13 }, (_, index) => `"1.${25 + index}"`)],
  'clientConnection.kubeconfig': ['""', '/var/lib/kube-proxy/kubeconfig.conf', 'relative/file'],
  'clientConnection.acceptContentTypes': ['""', '"application/vnd.kubernetes.protobuf,application/json"'],
  'clientConnection.contentType': ['""', 'application/json', 'application/vnd.kubernetes.protobuf'],
  'clientConnection.qps': ['0', '5', '0.5', '-1', '1e3'],
  'clientConnection.burst': int32,
  'logging.format': ['""', 'text', 'json'],
  'logging.verbosity': ['0', '4', '10', '2147483647'],
  mode: ['""', 'iptables', 'nftables', 'ebpf'],
  detectLocalMode: [
    '""',
    'ClusterCIDR',
    'NodeCIDR',
    { text: 'BridgeInterface', beside: { 'detectLocal.bridgeInterface': 'cni0' } },
    { text: 'InterfaceNamePrefix', beside: { 'detectLocal.interfaceNamePrefix': 'veth' } },
  ],
  'detectLocal.bridgeInterface': ['""', { text: 'br-0', beside: { detectLocalMode: 'BridgeInterface' } }],
  'detectLocal.interfaceNamePrefix': ['""', { text: 'cali', beside: { detectLocalMode: 'InterfaceNamePrefix' } }],
  clusterCIDR: [
    '""',
    '10.244.0.0/16',
    '10.244.3.4/16',
    '010.244.000.000/16',
    '"010.244.0.0/16,fd00:0010:0244::/56"',
    '"fd00:10:244::/56"',
    '"10.244.0.0/16,fd00:10:244::/56"',
    '"fd00:10:244::/56,10.244.0.0/16"',
  ],
  nodePortAddresses: [
    '[]',
    '[primary]',
    '[localhost]',
    '[all]',
    '[primary, localhost]',
    '[primary, 192.0.2.0/24]',
    '[localhost, "2001:db8::/64"]',
    '[all, primary, localhost, 192.0.2.0/24, "2001:db8::/64"]',
    '[primary, primary]',
    '[192.0.2.7/24, 127.0.0.0/8]',
    '[192.000.002.000/24]',
    '[0.0.0.0/0, "::/0"]',
  ],
  oomScoreAdj: ['-1000', '-999', '0', '1000'],
  portRange: ['""', '1000-2000', '"1000+5"'],
  'conntrack.maxPerCore': int32,
  'conntrack.min': int32,
  'iptables.masqueradeBit': marks,
  'nftables.masqueradeBit': marks,
  'iptables.syncPeriod': periods('iptables'),
  'nftables.syncPeriod': periods('nftables'),
  'iptables.minSyncPeriod': leastPeriods('iptables'),
  'nftables.minSyncPeriod': leastPeriods('nftables'),
  'ipvs.scheduler': ['""', 'rr', 'wlc', 'mh'],
  'ipvs.excludeCIDRs': lists,
  'winkernel.networkName': words,
  'winkernel.sourceVip': words,
  'winkernel.rootHnsEndpointName': words,
};

/** Paths that have texts of their own, to be compared with a schema. */
export const pathsWithTexts: readonly string[] = Object.keys(textsByPath);

/**
 * Legal values of a field: null, which says nothing, and those of its path or type. The bounds are those of kube-proxy's
 * pkg/proxy/apis/config/validation. Only null if the field has no row.
 */
export function legalValuesOf({ path, type }: Field): readonly LegalValue[] {
  const texts: readonly Given[] = textsByPath[path] ?? textsByType[type] ?? [];
  return ['null', ...texts].map((given) => ({ path, ...(typeof given === 'string' ? { text: given } : given) }));
}

/** A file with these fields; texts are YAML by path. */
export function fileOfTexts({ apiVersion, kind }: Schema, texts: Readonly<Record<string, string>>): string {
  const lines = Object.entries(treeOf(texts)).map(([key, node]) => `${key}: ${flowText(node)}\n`);
  return [`apiVersion: ${apiVersion}\n`, `kind: ${kind}\n`, ...lines].join('');
}

interface Tree {
  [key: string]: Tree | string;
}

function treeOf(texts: Readonly<Record<string, string>>): Tree {
  const root: Tree = {};
  for (const [path, text] of Object.entries(texts)) {
    const keys = path.split('.');
    const last = keys.pop() ?? path;
    let node = root;
    for (const key of keys) {
      const next = node[key];
      node = typeof next === 'object' ? next : (node[key] = {});
    }
    node[last] = text;
  }
  return root;
}

function flowText(node: Tree | string): string {
  if (typeof node === 'string') return node;
  return `{ ${Object.entries(node)
    .map(([key, value]) => `${key}: ${flowText(value)}`)
    .join(', ')} }`;
}
