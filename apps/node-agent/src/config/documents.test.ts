import { describe, expect, test } from 'vitest';
import { loadConfig, parseConfig, type RunConfig } from '../config.ts';
import { configzDocument, flagzValues, toDocument } from './documents.ts';
import { settingChanges } from './config-follower.ts';
import { ConfigFolder } from './testing/config-folder.ts';
import { toYaml } from './commands.ts';

function run(...args: readonly string[]): RunConfig {
  const config = parseConfig(['--proxy-mode=nftables', ...args], {});
  if (config.kind !== 'run') throw new Error('not a run');
  return config;
}

async function reload(text: string): Promise<RunConfig> {
  await using folder = await ConfigFolder.create();
  const config = await loadConfig([`--config=${await folder.write('config.conf', text)}`], {});
  if (config.kind !== 'run') throw new Error('not a run');
  return config;
}

describe('what --write-config-to writes', () => {
  test.each<readonly [string, readonly string[]]>([
    ['the defaults', []],
    [
      'every kind of value',
      [
        '--cluster-cidr=10.244.0.0/16,fd00:10:244::/56',
        '--nodeport-addresses=10.0.0.0/8,fd00::/8',
        '--feature-gates=AllowServiceExternalIPs=false,NativeHistograms=true',
        '--vmodule=a=1,b*=2',
        '--log-flush-frequency=1m',
        '--log-json-info-buffer-size=4Ki',
        '--conntrack-tcp-timeout-established=0',
        '--conntrack-udp-timeout=1m30s',
        '--iptables-min-sync-period=250ms',
        '--iptables-sync-period=1h',
        '--masquerade-all',
        '--iptables-localhost-nodeports=false',
        '--kube-api-qps=0.5',
        '--hostname-override=yes',
        '--oom-score-adj=0',
        '--metrics-bind-address=[::1]:9',
      ],
    ],
  ])('is read as the same: %s', async (_, args) => {
    const written = run(...args);
    const read = await reload(toYaml(toDocument(written.settings.kubeProxy)));
    expect(settingChanges(written.settings, read.settings)).toEqual([]);
    expect(read.notes.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  test('has every field, sorted, in the form kube-proxy writes', () => {
    const text = toYaml(toDocument(run('--feature-gates=NativeHistograms=true').settings.kubeProxy));
    expect(text).toContain(`conntrack:
  maxPerCore: 32768
  min: 131072
  tcpBeLiberal: false
  tcpCloseWaitTimeout: "1h0m0s"
  tcpEstablishedTimeout: "24h0m0s"
  udpStreamTimeout: "0s"
  udpTimeout: "0s"
`);
    expect(text).toContain('featureGates:\n  NativeHistograms: true\n');
    expect(text).toContain('flushFrequency: 5000000000\n');
    expect(text).toContain('nodePortAddresses:\n- primary\n');
    const keys = text.match(/^\w+/gm) ?? [];
    expect(keys).toEqual([...keys].sort());
  });

  test('flags of all modes go where the mode reads them', () => {
    const document = (...args: readonly string[]): object => {
      const config = parseConfig(['--write-config-to=/x', '--masquerade-all', ...args], {});
      return config.kind === 'write' ? toDocument(config.settings) : {};
    };
    expect(document('--proxy-mode=nftables')).toMatchObject({
      nftables: { masqueradeAll: true },
      iptables: { masqueradeAll: false },
    });
    expect(document('--proxy-mode=iptables', '--iptables-sync-period=9s')).toMatchObject({
      nftables: { masqueradeAll: false, syncPeriod: '30s' },
      iptables: { masqueradeAll: true, syncPeriod: '9s' },
    });
  });
});

test('configz has both configurations', () => {
  expect(configzDocument(run('--switchyard-nft-transport=cli').settings)).toMatchObject({
    'kubeproxy.config.k8s.io': { kind: 'KubeProxyConfiguration', mode: 'nftables', featureGates: {} },
    'switchyard.dev': { kind: 'SwitchyardConfiguration', nftTransport: 'cli' },
  });
});

test('flagz has every flag: as given, or as in force', () => {
  const { flags, settings } = run('--oom-score-adj', '0x10', '--feature-gates=NativeHistograms=true');
  const values = flagzValues(flags, settings);
  expect([...values.keys()]).toEqual([...values.keys()].sort());
  expect(Object.fromEntries(values)).toMatchObject({
    'oom-score-adj': '0x10',
    'feature-gates': 'NativeHistograms=true',
    'iptables-sync-period': '30s',
    'log-flush-frequency': '5s',
    'nodeport-addresses': 'primary',
    'switchyard-service-metrics-limit': '1000',
    cleanup: 'false',
    v: '0',
  });
});

describe('toYaml', () => {
  test('quotes what could be taken for something else', () => {
    expect(
      toYaml({ a: 'plain', b: 'yes', c: '1e3', d: '', e: 'x: y', f: [{ g: 'h', i: 1 }], j: {}, k: [], l: ['::'] }),
    ).toBe(`a: plain\nb: "yes"\nc: "1e3"\nd: ""\ne: "x: y"\nf:\n- g: h\n  i: 1\nj: {}\nk: []\nl:\n- "::"\n`);
  });
});
