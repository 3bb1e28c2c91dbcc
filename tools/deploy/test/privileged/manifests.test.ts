import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { schemaFaults } from '../../check-schema.ts';
import { type KubeObject, nameOf, onlyOne, withoutHelmLabels, withParsedData } from '../../kube-object.ts';
import { parseConfig } from '../../../../apps/node-agent/src/config.ts';
import { defaultTag } from '../../../images/build-image.ts';
import { chart, renderHelm } from '../../helm.ts';
import { debianKubectl, type Overlay, overlays, renderKustomize } from '../../kustomize.ts';

// Renders by the real kubectl and by Helm's template engine, and holds the results against Kubernetes' own schemas.

const { signal } = new AbortController();
let byOverlay: ReadonlyMap<Overlay, readonly KubeObject[]>;

beforeAll(async () => {
  const rendered = overlays.map(async (overlay) => [overlay, await renderKustomize(overlay, signal)] as const);
  byOverlay = new Map(await Promise.all(rendered));
});

function objectsOf(overlay: Overlay): readonly KubeObject[] {
  return byOverlay.get(overlay) ?? [];
}

test("Debian's kubectl renders the same as the one in PATH", async () => {
  const kubectl = await debianKubectl(signal);
  for (const overlay of overlays) {
    assert.deepEqual(await renderKustomize(overlay, signal, kubectl), objectsOf(overlay), overlay);
  }
});

const expectedNames: Readonly<Record<Overlay, readonly string[]>> = {
  nftables: [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'DaemonSet kube-system/switchyard',
    'ServiceAccount kube-system/switchyard',
  ],
  iptables: [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'DaemonSet kube-system/switchyard',
    'ServiceAccount kube-system/switchyard',
  ],
  ebpf: [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'DaemonSet kube-system/switchyard',
    'ServiceAccount kube-system/switchyard',
  ],
  'custom-settings': [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'ConfigMap kube-system/switchyard',
    'DaemonSet kube-system/switchyard',
    'ServiceAccount kube-system/switchyard',
  ],
  standalone: [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'ConfigMap kube-system/kube-proxy',
    'DaemonSet kube-system/switchyard',
    'ServiceAccount kube-system/switchyard',
  ],
  'replace-kubeadm': ['DaemonSet kube-system/kube-proxy'],
  'clean-up': ['DaemonSet kube-system/switchyard-clean-up'],
  observer: ['DaemonSet kube-system/switchyard-observer'],
  'drain-gate-observer': [
    'DaemonSet kube-system/switchyard-observer',
    'Deployment kube-system/switchyard-drain-gate',
    'Service kube-system/switchyard-drain-gate',
  ],
  'drain-gate': [
    'ClusterRole switchyard',
    'ClusterRoleBinding switchyard',
    'DaemonSet kube-system/switchyard',
    'Deployment kube-system/switchyard-drain-gate',
    'Service kube-system/switchyard-drain-gate',
    'ServiceAccount kube-system/switchyard',
  ],
  'readiness-gate': [
    'ClusterRole switchyard',
    'ClusterRole switchyard-readiness-gate',
    'ClusterRoleBinding switchyard',
    'ClusterRoleBinding switchyard-drain-gate',
    'ClusterRoleBinding switchyard-readiness-gate',
    'DaemonSet kube-system/switchyard',
    'Deployment kube-system/switchyard-drain-gate',
    'Role kube-system/switchyard-readiness-gate',
    'RoleBinding kube-system/switchyard-readiness-gate',
    'Service kube-system/switchyard-drain-gate',
    'ServiceAccount kube-system/switchyard',
    'ServiceAccount kube-system/switchyard-drain-gate',
  ],
};

for (const overlay of overlays) {
  test(`overlay ${overlay} holds what it should, and Kubernetes' schemas say nothing against it`, () => {
    assert.deepEqual(objectsOf(overlay).map(nameOf), expectedNames[overlay]);
    for (const object of objectsOf(overlay)) assert.deepEqual(schemaFaults(object), [], nameOf(object));
  });
}

test('the iptables mode has the rights of the nftables mode in the API server, and what iptables-legacy needs besides', () => {
  for (const kind of ['ClusterRole', 'ClusterRoleBinding', 'ServiceAccount']) {
    assert.deepEqual(onlyOne(objectsOf('iptables'), kind), onlyOne(objectsOf('nftables'), kind));
  }
  const text = JSON.stringify(onlyOne(objectsOf('iptables'), 'DaemonSet'));
  assert.ok(text.includes('"add":["NET_ADMIN","NET_RAW"]'), text);
  assert.ok(text.includes('"hostPath":{"path":"/run/xtables.lock","type":"FileOrCreate"}'), text);
  assert.equal(text.match(/"mountPath":"\/run\/xtables.lock"/g)?.length, 2);
});

test('the ebpf mode has the rights of the nftables mode in the API server, and sees what of the node it works on', () => {
  for (const kind of ['ClusterRole', 'ClusterRoleBinding', 'ServiceAccount']) {
    assert.deepEqual(onlyOne(objectsOf('ebpf'), kind), onlyOne(objectsOf('nftables'), kind));
  }
  const { agent, setUp, volumes } = podOf('ebpf');
  assert.equal(agent.image, defaultTag('agent-ebpf'));
  assert.equal(agent.securityContext.privileged, false);
  assert.deepEqual(agent.securityContext.capabilities, {
    drop: ['ALL'],
    add: ['NET_ADMIN', 'SYS_ADMIN'],
  });
  // Only a privileged container may mount for the node, and only this one is.
  assert.equal(setUp.securityContext.privileged, true);
  const mountOf = ({ volumeMounts }: PodContainer, name: string) => volumeMounts.find((mount) => mount.name === name);
  assert.equal(mountOf(setUp, 'bpffs')?.mountPropagation, 'Bidirectional');
  assert.equal(mountOf(agent, 'bpffs')?.mountPropagation, 'HostToContainer');
  for (const container of [agent, setUp]) {
    const config = parseConfig(['--kubeconfig=/k', ...container.command.filter(isOurFlag)], {});
    assert.ok(config.kind === 'run');
    assert.equal(config.ebpf.bpffs, mountOf(container, 'bpffs')?.mountPath);
    assert.equal(config.ebpf.cgroup, mountOf(container, 'cgroup')?.mountPath);
    assert.equal(mountOf(container, 'cgroup')?.readOnly, true);
  }
  const paths = volumes.map(({ hostPath }) => hostPath?.path);
  assert.deepEqual(paths, [undefined, '/sys/fs/bpf', '/sys/fs/cgroup', '/run/netns']);
});

test('the clean-up sees what the ebpf mode pinned, without rights of its own', () => {
  const { setUp: cleanUp } = podOf('clean-up');
  assert.deepEqual(cleanUp.securityContext.capabilities?.add, ['NET_ADMIN', 'NET_RAW']);
  const config = parseConfig(cleanUp.command.slice(1), {});
  assert.ok(config.kind === 'cleanup');
  const mounts = cleanUp.volumeMounts.map(({ mountPath }) => mountPath);
  assert.ok(mounts.includes(config.ebpf.bpffs), mounts.join());
});

interface PodContainer {
  readonly image: string;
  readonly command: readonly string[];
  readonly securityContext: { readonly privileged?: boolean; readonly capabilities?: { readonly add: unknown } };
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly mountPropagation?: string;
    readonly readOnly?: boolean;
  }[];
}

/** The only container of each kind of a DaemonSet's pods, and their volumes. */
function podOf(overlay: Overlay) {
  const { template } = onlyOne(objectsOf(overlay), 'DaemonSet')['spec'] as {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [PodContainer];
        readonly initContainers: readonly [PodContainer];
        readonly volumes: readonly { readonly hostPath?: { readonly path: string } }[];
      };
    };
  };
  const { containers, initContainers, volumes } = template.spec;
  return { agent: containers[0], setUp: initContainers[0], volumes };
}

const isOurFlag = (argument: string): boolean => argument.startsWith('--switchyard-');

// Each row: what is wrong; where; the value there; what is said about it.
const mistakes: readonly (readonly [string, readonly (string | number)[], unknown, RegExp])[] = [
  ['a misspelt field', ['spec', 'template', 'spec', 'hostNetwrok'], true, /hostNetwrok: unknown field of V1PodSpec/],
  [
    'an unknown field deep in a list',
    ['spec', 'template', 'spec', 'containers', 0, 'readinessProbe', 'httpGet', 'pth'],
    '/',
    /\.spec\.template\.spec\.containers\[0\]\.readinessProbe\.httpGet\.pth: unknown field of V1HTTPGetAction/,
  ],
  ['a number for a text', ['spec', 'template', 'spec', 'nodeSelector', 'a'], 1, /nodeSelector\.a: a string is wanted/],
  ['a text for a number', ['spec', 'minReadySeconds'], '5', /minReadySeconds/],
  ['an object for a list', ['spec', 'template', 'spec', 'tolerations'], {}, /tolerations: a list is wanted/],
  ['a required field that is missing', ['spec', 'selector'], undefined, /required property selector/],
  [
    'a quantity that is none',
    ['spec', 'template', 'spec', 'containers', 0, 'resources', 'requests', 'memory'],
    'much',
    /memory/,
  ],
];

for (const [title, path, value, expected] of mistakes) {
  test(`the schemas refuse ${title}`, () => {
    const broken = structuredClone(onlyOne(objectsOf('nftables'), 'DaemonSet'));
    setAt(broken, path, value);
    assert.match(schemaFaults(broken).join('\n'), expected);
  });
}

test('the schemas refuse a kind they do not know', () => {
  const unknown = { apiVersion: 'v1', kind: 'Surprise', metadata: { name: 'a' } };
  assert.match(schemaFaults(unknown).join('\n'), /no schema is known/);
});

const beside = { serviceAccount: { create: false, name: 'kube-proxy' }, rbac: { create: false } };
// Each row: values; the overlay that makes the same.
const equalPairs: readonly (readonly [object, Overlay])[] = [
  [{}, 'nftables'],
  [{ dataplane: 'iptables' }, 'iptables'],
  [{ dataplane: 'ebpf' }, 'ebpf'],
  [{ settings: { kubeProxyRules: 'keep' } }, 'custom-settings'],
  [{ configMap: { create: true }, apiServer: 'https://control-plane.example.com:6443' }, 'standalone'],
  [{ drainGate: true }, 'drain-gate'],
  [{ drainGate: true, readinessGate: { enabled: true } }, 'readiness-gate'],
  [{ ...beside, observe: true }, 'observer'],
  [{ ...beside, observe: true, drainGate: true }, 'drain-gate-observer'],
];

for (const [values, overlay] of equalPairs) {
  test(`the chart with ${JSON.stringify(values)} makes the same as overlay ${overlay}`, async () => {
    const { objects } = await renderHelm({ values }, signal);
    for (const object of objects) assert.deepEqual(schemaFaults(object), [], nameOf(object));
    const meaning = (object: KubeObject): KubeObject => withParsedData(withoutHelmLabels(object), parse);
    assert.deepEqual(
      objects.map(meaning).map(unlabelledConfigMap),
      objectsOf(overlay).map(meaning).map(unlabelledConfigMap),
    );
  });
}

test("an observer has the chart's own rights, settings and commands, and no init container", async () => {
  const values = { observe: true, settings: { kubeProxyRules: 'keep' }, extraArgs: ['--v=4'] };
  const { objects, notes } = await renderHelm({ name: 'watch', namespace: 'net', values }, signal);
  for (const object of objects) assert.deepEqual(schemaFaults(object), [], nameOf(object));
  assert.deepEqual(objects.map(nameOf), [
    'ClusterRole watch',
    'ClusterRoleBinding watch',
    'ConfigMap net/watch',
    'DaemonSet net/watch-observer',
    'ServiceAccount net/watch',
  ]);
  const text = JSON.stringify(onlyOne(objects, 'DaemonSet'));
  assert.ok(text.includes('"--switchyard-observe","--v=4"'), text);
  assert.ok(!text.includes('initContainers'));
  assert.ok(notes.includes('kubectl switchyard losses --follow --agent-namespace=net'), notes);
});

test('the readiness gate of another release has its own Lease, and labels of pods', async () => {
  const values = {
    drainGate: true,
    readinessGate: { enabled: true, pods: 'app=shop' },
    imagePullSecrets: [{ name: 'pull' }],
  };
  const { objects } = await renderHelm({ name: 'proxy-a', namespace: 'net', values }, signal);
  for (const object of objects) assert.deepEqual(schemaFaults(object), [], nameOf(object));
  const text = JSON.stringify(onlyOne(objects, 'Deployment'));
  const flags =
    '"--readiness-gate","--readiness-gate-pods=app=shop","--readiness-gate-lease=net/proxy-a-readiness-gate"';
  assert.ok(text.includes(flags), text);
  assert.ok(text.includes('"serviceAccountName":"proxy-a-drain-gate","imagePullSecrets":[{"name":"pull"}]'), text);
  assert.ok(JSON.stringify(onlyOne(objects, 'Role')).includes('"resourceNames":["proxy-a-readiness-gate"]'));
});

test('every value of the chart reaches the objects, and what comes out is valid', async () => {
  const values = {
    image: { repository: 'registry.example.com/agent', tag: 'v9', pullPolicy: 'Always' },
    imagePullSecrets: [{ name: 'pull' }],
    configMap: { create: true, name: 'proxy-config' },
    apiServer: 'https://api.example.com:6443',
    kubeProxyConfiguration: { clusterCIDR: '10.1.0.0/16,fd00:1::/56', conntrack: { maxPerCore: 0 } },
    settings: { serviceMetrics: { limit: 100_000_000 } },
    extraArgs: ['--v=4'],
    serviceAccount: { create: true, name: 'proxy' },
    healthzPort: 10_356,
    updateStrategy: { maxUnavailable: 1 },
    priorityClassName: 'system-cluster-critical',
    waitForKubeProxyToGo: false,
    nodeSelector: { pool: 'a' },
    tolerations: [{ key: 'k', operator: 'Exists' }],
    resources: { requests: { cpu: '10m' }, limits: { memory: '1Gi' } },
    podLabels: { team: 'net' },
    podAnnotations: { note: 'x' },
    removeLegacyIptablesRules: true,
    terminationGracePeriodSeconds: 3,
  };
  const { objects, notes } = await renderHelm({ name: 'proxy-a', namespace: 'net', values }, signal);
  for (const object of objects) assert.deepEqual(schemaFaults(object), [], nameOf(object));
  assert.deepEqual(objects.map(nameOf), [
    'ClusterRole proxy-a',
    'ClusterRoleBinding proxy-a',
    'ConfigMap net/proxy-a',
    'ConfigMap net/proxy-config',
    'DaemonSet net/proxy-a',
    'ServiceAccount net/proxy',
  ]);
  const text = JSON.stringify(objects);
  for (const expected of [
    'registry.example.com/agent:v9',
    '"pull"',
    '10.1.0.0/16',
    'maxPerCore: 0',
    '--v=4',
    '"team":"net"',
  ]) {
    assert.ok(text.includes(expected), expected);
  }
  assert.ok(text.includes('"maxUnavailable":1,'), 'a number stays a number');
  assert.ok(text.includes('limit: 100000000'), 'large numbers stay what they are');
  assert.ok(text.includes('"add":["NET_ADMIN","NET_RAW"]') && text.includes('/run/xtables.lock'));
  assert.ok(!text.includes('podAntiAffinity'));
  assert.ok(notes.includes('kubectl -n net rollout status ds/proxy-a'), notes);
});

// Each row: values that cannot be; what the operator reads.
const refusals: readonly (readonly [object, RegExp])[] = [
  [{ configMap: { create: true } }, /configMap.create is true: give apiServer/],
  [{ serviceAccount: { create: false } }, /serviceAccount.create is false: give serviceAccount.name/],
  [{ readinessGate: { enabled: true } }, /readinessGate.enabled is true: set drainGate=true/],
];

for (const [values, message] of refusals) {
  test(`the chart refuses ${JSON.stringify(values)}`, async () => {
    await assert.rejects(renderHelm({ values }, signal), message);
  });
}

test('values.schema.json accepts values.yaml, knows each of its values, and refuses others', async () => {
  const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8')) as {
    readonly properties: object;
  };
  const values = parse(await readFile(join(chart, 'values.yaml'), 'utf8')) as object;
  const validate = new Ajv({ strict: true, allErrors: true }).compile(schema);
  assert.ok(validate(values), JSON.stringify(validate.errors));
  assert.deepEqual(Object.keys(schema.properties).toSorted(), ['global', ...Object.keys(values)].toSorted());
  const wrong = [
    { imge: {} },
    { dataplane: 'ipvs' },
    { observe: 'yes' },
    { apiServer: 'control-plane:6443' },
    { settings: { kind: 'x' } },
    { updateStrategy: { maxUnavailable: '0%' } },
    { extraArgs: ['v=4'] },
  ];
  for (const value of wrong) assert.ok(!validate({ ...values, ...value }), JSON.stringify(value));
});

/** Which labels a made ConfigMap has is a matter of taste. */
function unlabelledConfigMap(object: KubeObject): KubeObject {
  return object.kind === 'ConfigMap' ? { ...object, metadata: { ...object.metadata, labels: {} } } : object;
}

function setAt(object: object, path: readonly (string | number)[], value: unknown): void {
  const last = path.at(-1) ?? '';
  let place = object as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) place = place[key] as Record<string | number, unknown>;
  if (value === undefined) delete place[last];
  else place[last] = value;
}
