import { readFile } from 'node:fs/promises';
import { ConfigError } from '@switchyard/core';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Config, loadConfig, type RunConfig } from '../config.ts';
import { kubeProxySchema } from './schema/kube-proxy-fields.ts';
import { ConfigFolder } from './testing/config-folder.ts';
import { kubeadmFile } from './testing/kubeadm-file.ts';

interface Texts {
  readonly config?: string;
  readonly own?: string;
}

async function load({ config, own }: Texts, ...args: readonly string[]): Promise<Config> {
  await using folder = await ConfigFolder.create();
  const files: string[] = [];
  if (config !== undefined) files.push(`--config=${await folder.write('config.conf', config)}`);
  if (own !== undefined) files.push(`--switchyard-config=${await folder.write('own.yaml', own)}`);
  return await loadConfig([...files, ...args], {});
}

async function run(texts: Texts, ...args: readonly string[]): Promise<RunConfig> {
  const config = await load(texts, ...args);
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
}

/** The lines of the error, with the folder's name cut out. */
async function faults(texts: Texts, ...args: readonly string[]): Promise<readonly string[]> {
  const error = await load(texts, ...args).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof Error) || error.name !== 'ConfigError') throw new Error('no ConfigError', { cause: error });
  return error.message.replaceAll(/\/\S*\/(config\.conf|own\.yaml)/g, '$1').split('\n');
}

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
const kindAndMode = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
};
const ownHead = 'apiVersion: switchyard.dev/v1alpha1\nkind: SwitchyardConfiguration\n';
const nftables = { config: head };

describe("kubeadm's file", () => {
  test('with mode: nftables loads as it is, with nothing to say about it', async () => {
    const config = await run({ config: kubeadmFile.replace('mode: ""', 'mode: nftables') }, '--hostname-override=N1');
    expect(config.notes).toEqual([]);
    expect(config).toMatchObject({
      nodeName: 'n1',
      source: { kind: 'kubeconfig', file: '/var/lib/kube-proxy/kubeconfig.conf' },
      bindAddress: undefined,
      detectLocal: { kind: 'clusterCIDR', cidrs: { IPv4: '10.244.0.0/16' } },
      nodePortAddresses: { primary: true, cidrs: [], loopback: [] },
      healthz: { address: '0.0.0.0', port: 10256 },
      metricsServer: { address: '127.0.0.1', port: 10249 },
      minSyncPeriod: undefined,
      syncPeriod: 30_000,
      oomScoreAdj: -999,
      conntrack: {
        maxPerCore: 32_768,
        min: 131_072,
        tcpEstablishedTimeout: 86_400_000,
        tcpCloseWaitTimeout: 3_600_000,
        tcpBeLiberal: false,
        udpTimeout: 0,
        udpStreamTimeout: 0,
      },
      logLevel: 'info',
      logFormat: 'text',
    });
  });

  test('as JSON is the same', async () => {
    const json = JSON.stringify({ ...kindAndMode, conntrack: { maxPerCore: 0 } });
    expect((await run({ config: json })).conntrack.maxPerCore).toBe(0);
  });
});

test("kind's part, with the metadata it carries", async () => {
  const config = await run({
    config: `${head}metadata:\n  name: config\niptables:\n  minSyncPeriod: 1s\nconntrack:\n  maxPerCore: 0\n`,
  });
  expect(config.conntrack).toMatchObject({ maxPerCore: 0, min: 131_072 });
  expect(config.notes).toEqual([
    {
      level: 'warn',
      message: 'using lenient decoding as strict decoding failed',
      fields: { file: expect.stringContaining('config.conf'), findings: ['unknown field "metadata" (line 4)'] },
    },
  ]);
});

test("k3s's flags", async () => {
  const config = await run(
    {},
    '--cluster-cidr=10.42.0.0/16',
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-close-wait=0s',
    '--conntrack-tcp-timeout-established=0s',
    '--healthz-bind-address=127.0.0.1',
    '--hostname-override=server-0',
    '--kubeconfig=/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig',
    '--proxy-mode=nftables',
  );
  expect(config).toMatchObject({
    healthz: { address: '127.0.0.1', port: 10256 },
    conntrack: { maxPerCore: 0, tcpCloseWaitTimeout: 0, tcpEstablishedTimeout: 0 },
    notes: [],
  });
});

describe('the files we ship', () => {
  const shipped = (path: string): Promise<string> =>
    readFile(new URL(`../../../../deploy/kustomize/overlays/${path}`, import.meta.url), 'utf8');

  test('for kube-proxy load without a word', async () => {
    const config = await run({ config: await shipped('standalone/config.conf') }, '--hostname-override=n1');
    expect(config).toMatchObject({ oomScoreAdj: -997, notes: [] });
  });

  test('of our own load without a word', async () => {
    const config = await run({ ...nftables, own: await shipped('custom-settings/config.yaml') });
    expect(config).toMatchObject({ kubeProxyRules: 'keep', notes: [] });
  });
});

test('every file is accepted, or refused with a ConfigError', async () => {
  const paths = kubeProxySchema.fields.map(({ path }) => path);
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', '0s', '1h', 'yes', -1, 2 ** 40, null));
  await using folder = await ConfigFolder.create();
  const check = async (path: string, one: unknown, text: string): Promise<void> => {
    const document = path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), one);
    const file = await folder.write('config.conf', `${head}${JSON.stringify(document).slice(1, -1)}\n${text}`);
    const flow = await folder.write('flow.conf', JSON.stringify({ ...kindAndMode, ...(document as object) }));
    for (const name of [file, flow]) {
      await loadConfig([`--config=${name}`], {}).catch((error: unknown) => expect(error).toBeInstanceOf(ConfigError));
    }
  };
  await fc.assert(fc.asyncProperty(fc.constantFrom(...paths), value, fc.string(), check), { numRuns: 300 });
});

describe('a field', () => {
  test.each<readonly [string, string, Partial<RunConfig>]>([
    ['zero behind a pointer is a value', 'oomScoreAdj: 0\n', { oomScoreAdj: 0 }],
    ['zero elsewhere is nothing', 'nftables: { syncPeriod: 0s }\n', { syncPeriod: ms(30_000) }],
    ['a least period counts', 'nftables: { minSyncPeriod: 1s }\n', { minSyncPeriod: ms(1000) }],
    [
      'null is nothing',
      'nodePortAddresses: null\nconntrack: null\n',
      { nodePortAddresses: { primary: true, cidrs: [], loopback: [] } },
    ],
    ['masquerade all, of the nftables mode', 'nftables: { masqueradeAll: true }\n', { masqueradeAll: true }],
    ['masquerade all, of another mode', 'iptables: { masqueradeAll: true }\n', { masqueradeAll: false }],
    ['booleans of YAML 1.1', 'enableProfiling: yes\n', { enableProfiling: true }],
    ['a node range', 'detectLocalMode: NodeCIDR\n', { detectLocal: { kind: 'nodeCIDR' } }],
    [
      'a bridge',
      'detectLocalMode: BridgeInterface\ndetectLocal: { bridgeInterface: cni0 }\n',
      { detectLocal: { kind: 'bridgeInterface', name: 'cni0' } },
    ],
    [
      'a prefix',
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: { interfaceNamePrefix: veth }\n',
      { detectLocal: { kind: 'interfaceNamePrefix', prefix: 'veth' } },
    ],
    ['verbosity', 'logging: { verbosity: 5, format: json }\n', { logLevel: 'debug', logFormat: 'json' }],
    ['hard failures', 'bindAddressHardFail: true\n', { bindAddressHardFail: true }],
    ['the name of the Node, in lower case', 'hostnameOverride: " Node-7 "\n', { nodeName: name('node-7') }],
  ])('%s', async (_, text, expected) => {
    expect(await run({ config: head + text })).toMatchObject(expected);
  });

  test('servers listen in the family of bindAddress', async () => {
    const config = await run({ config: `${head}bindAddress: "::"\n` });
    expect(config).toMatchObject({
      bindAddress: undefined,
      healthz: { address: '::', port: 10256 },
      metricsServer: { address: '::1', port: 10249 },
    });
    const own = await run({ config: `${head}bindAddress: 2001:db8::1\nmetricsBindAddress: 192.0.2.1\n` });
    expect(own).toMatchObject({
      bindAddress: '2001:db8::1',
      metricsServer: { address: '192.0.2.1', port: 10249 },
    });
  });
});

describe('feature gates of a cluster', () => {
  test('those of other components are accepted, and one line of the log says so', async () => {
    const gates = 'SidecarContainers: true, AllowServiceExternalIPs: false, NodeSwap: false';
    const config = await run({ config: `${head}featureGates: { ${gates} }\n` });
    expect(config.featureGates.get('AllowServiceExternalIPs')).toBe(false);
    expect(config.notes).toEqual([
      {
        level: 'info',
        message: 'feature gates have no effect',
        fields: {
          gates: ['SidecarContainers', 'NodeSwap'],
          why: 'other components of Kubernetes read it, no proxy does',
        },
      },
    ]);
  });

  test('unknown gates and locked ones set to their other value are warnings', async () => {
    const gates = 'SideCarContainer: true, NoSuchGate: true, NFTablesProxyMode: false';
    const config = await run({ config: `${head}featureGates: { ${gates} }\n` });
    expect(config.featureGates.get('NFTablesProxyMode')).toBe(true);
    const whys = [
      'unrecognized feature gate: SideCarContainer (did you mean SidecarContainers?)',
      'unrecognized feature gate: NoSuchGate (this agent knows no such gate)',
      'cannot set feature gate NFTablesProxyMode to false, feature is locked to true',
    ];
    expect(config.notes.map(({ level, fields, event }) => ({ level, ...fields, ...event }))).toEqual(
      whys.map((why) => ({ level: 'warn', why, reason: 'FeatureGateIgnored', note: why })),
    );
  });
});

describe('flags beside a file', () => {
  test('for logging, the host name and the API server win; others have no effect, and the log names them', async () => {
    const config = await run(
      { config: `${head}hostnameOverride: other\nlogging: { verbosity: 0 }\nclusterCIDR: 10.1.0.0/16\n` },
      '--hostname-override=n1',
      '-v=6',
      '--logging-format=json',
      '--master=https://192.0.2.9:6443',
      '--cluster-cidr=10.2.0.0/16',
      '--proxy-mode=ipvs',
      '--healthz-port=0',
      '--feature-gates=NoSuchGate=true',
    );
    expect(config).toMatchObject({
      nodeName: 'n1',
      logLevel: 'trace',
      logFormat: 'json',
      source: { kind: 'server', server: new URL('https://192.0.2.9:6443') },
      detectLocal: { kind: 'clusterCIDR', cidrs: { IPv4: '10.1.0.0/16' } },
      healthz: { port: 10256 },
    });
    expect(config.notes).toContainEqual({
      level: 'warn',
      message: 'flags have no effect beside --config',
      fields: {
        flags: ['--cluster-cidr', '--proxy-mode', '--healthz-port', '--feature-gates'],
        file: expect.stringContaining('config.conf'),
      },
    });
  });

  test("--master takes the place of the kubeconfig's server", async () => {
    const config = await run({ config: `${head}clientConnection: { kubeconfig: /k }\n` }, '--master', 'localhost:8080');
    expect(config.source).toEqual({ kind: 'kubeconfig', file: '/k', server: new URL('http://localhost:8080') });
  });

  test('our own win over our own file', async () => {
    const own = `${ownHead}iptablesVariant: legacy\nterminatingFallback: on\nkubeProxyRules: keep\nserviceMetrics: { enabled: false }\n`;
    expect(await run({ ...nftables, own }, '--switchyard-iptables-variant=nft')).toMatchObject({
      iptables: { variant: 'nft' },
      terminatingFallback: 'on',
      kubeProxyRules: 'keep',
      serviceMetrics: { kind: 'off' },
    });
    expect(await run({ ...nftables, own: `${ownHead}serviceMetrics: { limit: 7 }\n` })).toMatchObject({
      iptables: { variant: 'auto' },
      serviceMetrics: { kind: 'on', limit: 7 },
    });
  });
});

describe('lenient decoding', () => {
  test('unknown fields and duplicates are one warning, with path and line; the last duplicate counts', async () => {
    const config = await run({ config: `${head}conntrack:\n  max: 1\n  min: 5\nfuture: {}\nconntrack:\n  min: 6\n` });
    expect(config.conntrack.min).toBe(6);
    expect(config.notes).toMatchObject([
      {
        level: 'warn',
        message: 'using lenient decoding as strict decoding failed',
        fields: {
          findings: ['conntrack stands twice (line 8; the last counts)', 'unknown field "future" (line 7)'],
        },
      },
    ]);
  });
});

test('a second document is not read, as in kube-proxy, and the warning says so', async () => {
  const config = await run({ config: `${head}oomScoreAdj: 5\n---\n${head}oomScoreAdj: 6\n--- [` });
  expect(config.oomScoreAdj).toBe(5);
  expect(config.notes).toMatchObject([
    { level: 'warn', fields: { findings: ['a second document (line 6; only the first counts)'] } },
  ]);
});

describe('fields without effect', () => {
  test('are named with a reason each, if they say something', async () => {
    const text = `ipvs: { strictARP: true, scheduler: "" }
winkernel: { networkName: x }
nftables: { masqueradeBit: 15 }
logging: { flushFrequency: 1000000000 }
clientConnection: { qps: 5, burst: 20 }
`;
    const { notes } = await run({ config: head + text }, '--machine-id-file=/x', '--vmodule=proxier=4');
    expect(
      notes.map(({ message, fields }) => [message, fields['setting'] ?? fields['flags'], fields['value']]),
    ).toEqual([
      ['flags have no effect beside --config', ['--machine-id-file'], undefined],
      ['flag has no effect', undefined, undefined],
      ['setting has no effect', 'clientConnection.burst', 20],
      ['setting has no effect', 'logging.flushFrequency', '1s'],
      ['setting has no effect', 'logging.vmodule', [{ filePattern: 'proxier', verbosity: 4 }]],
      ['setting has no effect', 'nftables.masqueradeBit', 15],
      ['setting has no effect', 'ipvs.strictARP', true],
      ['setting has no effect', 'winkernel.networkName', 'x'],
    ]);
    for (const { fields } of notes.slice(1)) expect(fields['why']).toMatch(/\w/);
  });
});

describe('every fault is reported with its line', () => {
  test('values of a wrong type, and values out of range', async () => {
    const text = `conntrack:
  min: many
  maxPerCore: 1.5
  tcpEstablishedTimeout: 30
oomScoreAdj: -2000
nodePortAddresses: 10.0.0.0/8
featureGates: { AllowServiceExternalIPs: maybe }
iptables: []
nftables:
  syncPeriod: 1s
  minSyncPeriod: 2s
`;
    expect(await faults({ config: head + text, own: `${ownHead}nftTransport: pigeon\n` })).toEqual([
      'KubeProxyConfiguration.conntrack.min (config.conf:5): Invalid value: "many": must be a whole number',
      'KubeProxyConfiguration.conntrack.maxPerCore (config.conf:6): Invalid value: 1.5: must be a whole number',
      'KubeProxyConfiguration.conntrack.tcpEstablishedTimeout (config.conf:7): Invalid value: 30: must be a duration, such as 30s or 1m30s',
      'KubeProxyConfiguration.nodePortAddresses (config.conf:9): Invalid value: "10.0.0.0/8": must be a list of strings',
      'KubeProxyConfiguration.featureGates (config.conf:10): Invalid value: {"AllowServiceExternalIPs":"maybe"}: AllowServiceExternalIPs must be true or false',
      'KubeProxyConfiguration.iptables (config.conf:11): Invalid value: []: must be an object',
      'KubeProxyConfiguration.oomScoreAdj (config.conf:8): Invalid value: -2000: must be within the range [-1000, 1000]',
      'SwitchyardConfiguration.nftTransport (own.yaml:3): Invalid value: "pigeon": must be one of netlink, cli',
      'KubeProxyConfiguration.nftables.syncPeriod (config.conf:13): Invalid value: "1s": must be greater than or equal to KubeProxyConfiguration.nftables.minSyncPeriod',
    ]);
  });

  test.each([
    [
      '',
      'KubeProxyConfiguration (config.conf:1): the file is empty; it needs apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    ],
    [
      '# nothing\n',
      'KubeProxyConfiguration (config.conf:1): the file is empty; it needs apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    ],
    ['a: [\n', 'KubeProxyConfiguration (config.conf:2): not YAML:'],
    ['- a\n', 'KubeProxyConfiguration (config.conf:1): it is not one object'],
    [
      'apiVersion: kubeproxy.config.k8s.io/v1beta1\nkind: KubeProxyConfiguration\n',
      'KubeProxyConfiguration (config.conf:1): it says apiVersion "kubeproxy.config.k8s.io/v1beta1", kind "KubeProxyConfiguration"; it must be',
    ],
    [
      'mode: nftables\n',
      'KubeProxyConfiguration (config.conf:1): it says apiVersion undefined, kind undefined; it must be',
    ],
  ])('%j', async (text, expected) => {
    const [first = ''] = await faults({ config: text });
    expect(first).toContain(expected);
  });

  test('a file that is not there', async () => {
    await expect(loadConfig(['--config=/no/such/file'], {})).rejects.toThrow(
      /^--config: cannot read the file \/no\/such\/file: no such file or directory$/,
    );
    await expect(loadConfig(['--switchyard-config=/'], {})).rejects.toThrow(
      /^--switchyard-config: cannot read the file \/: illegal operation on a directory$/,
    );
  });

  test('--help and --version need no file', async () => {
    expect(await loadConfig(['--config=/no/such/file', '--version'], {})).toEqual({ kind: 'version', form: 'line' });
    expect(await loadConfig(['--config=/no/such/file', '-h'], {})).toEqual({ kind: 'help' });
  });
});

function ms(value: number): RunConfig['syncPeriod'] {
  return value as RunConfig['syncPeriod'];
}

function name(text: string): RunConfig['nodeName'] {
  return text as RunConfig['nodeName'];
}
