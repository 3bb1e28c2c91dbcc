import {
  HostError,
  type IpFamily,
  ipFamilies,
  type Logger,
  millis,
  nodeName,
  noopLogger,
  type RecordedEvent,
  seconds,
} from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';
import { describe, expect, test } from 'vitest';
import type { ConntrackConfig } from '../config/run-config.ts';
import { conntrackSettings, setUpAfterChange, setUpHost } from './set-up-host.ts';

const nothing: ConntrackConfig = {
  maxPerCore: 0,
  min: 0,
  tcpEstablishedTimeout: millis(0),
  tcpCloseWaitTimeout: millis(0),
  tcpBeLiberal: false,
  udpTimeout: millis(0),
  udpStreamTimeout: millis(0),
};
const max = '/proc/sys/net/netfilter/nf_conntrack_max';
const hashsize = '/sys/module/nf_conntrack/parameters/hashsize';
const oom = '/proc/self/oom_score_adj';

describe('conntrack settings', () => {
  test.each([
    ['32768 for each of 4 cores, as kube-proxy by default', { maxPerCore: 32_768, min: 131_072 }, 4, 131_072],
    ['the minimum where there are few cores', { maxPerCore: 32_768, min: 131_072 }, 2, 131_072],
    ['more than the minimum where there are many', { maxPerCore: 32_768, min: 131_072 }, 16, 524_288],
    ['no more than a million for 96 cores', { maxPerCore: 32_768, min: 131_072 }, 96, 1_048_576],
    ['a configured minimum above a million', { maxPerCore: 1, min: 2_000_000 }, 96, 2_000_000],
  ])('the number of flows is %s', (_, config, cores, value) => {
    expect(conntrackSettings({ ...nothing, ...config }, cores)).toEqual([
      { path: max, value, rule: 'atLeast' },
      { path: hashsize, value: value / 4, rule: 'atLeast' },
    ]);
  });

  test('maxPerCore 0 keeps the number of flows and ignores the minimum', () => {
    expect(conntrackSettings({ ...nothing, min: 131_072 }, 4)).toEqual([]);
  });

  test('timeouts are whole seconds, 0 leaves them alone, and liberal is only ever switched on', () => {
    const config: ConntrackConfig = {
      ...nothing,
      tcpEstablishedTimeout: seconds(86_400),
      tcpCloseWaitTimeout: seconds(3600),
      tcpBeLiberal: true,
      udpTimeout: millis(30_900),
      udpStreamTimeout: seconds(120),
    };
    expect(conntrackSettings(config, 4).map(({ path, value }) => `${path.split('/').at(-1)} ${value}`)).toEqual([
      'nf_conntrack_tcp_timeout_established 86400',
      'nf_conntrack_tcp_timeout_close_wait 3600',
      'nf_conntrack_tcp_be_liberal 1',
      'nf_conntrack_udp_timeout 30',
      'nf_conntrack_udp_timeout_stream 120',
    ]);
  });
});

describe('the set-up of the host', () => {
  const iptables = { variant: 'auto', masqueradeBit: 14, localhostNodePorts: true } as const;
  const config = {
    mode: 'nftables' as const,
    iptables,
    conntrack: { ...nothing, maxPerCore: 32_768, min: 131_072 },
    nodeName: nodeName('n1'),
  };

  /** A kernel with these settings, of which some are refused. */
  function kernel(settings: Record<string, string>, refused: Readonly<Record<string, string>> = {}) {
    const logged: string[] = [];
    const events: RecordedEvent[] = [];
    const files: KernelFiles = {
      read: (path) => settings[path],
      write: (path, value) => {
        const code = refused[path];
        if (code !== undefined) throw new HostError('host.setting', `cannot write ${value} to ${path}: ${code}`);
        settings[path] = value;
      },
    };
    const log =
      (level: string): Logger['info'] =>
      (message, fields) =>
        logged.push(`${level}: ${message} ${JSON.stringify(fields)}`);
    const logger: Logger = { ...noopLogger, info: log('info'), warn: log('warn') };
    const host = {
      files,
      cores: 4,
      ipFamilies,
      logger,
      events: { record: (event: RecordedEvent) => events.push(event) },
    };
    return { settings, logged, events, host };
  }

  test('changes what differs, says so once, and the next start changes nothing', () => {
    const { settings, logged, host } = kernel({ [max]: '65536', [hashsize]: '8192', [oom]: '0' });
    setUpHost({ ...config, oomScoreAdj: -999 }, host);
    expect(settings).toEqual({ [max]: '131072', [hashsize]: '32768', [oom]: '-999' });
    expect(logged).toEqual([
      `info: kernel settings changed {"changed":["${oom}: 0 -> -999"]}`,
      `info: kernel settings changed {"changed":["${max}: 65536 -> 131072","${hashsize}: 8192 -> 32768"]}`,
    ]);
    logged.length = 0;
    setUpHost({ ...config, oomScoreAdj: -999 }, host);
    expect(logged).toEqual([]);
  });

  test.each([
    ['hash table', { [max]: '131072', [hashsize]: '65536' }],
    ['number of flows, even if it cannot be written,', { [max]: '262144', [hashsize]: '32768' }],
  ])('a larger %s stays', (_, found) => {
    const { settings, logged, host } = kernel({ ...found }, { [max]: 'EACCES' });
    setUpHost({ ...config, oomScoreAdj: undefined }, host);
    expect(settings).toEqual(found);
    expect(logged).toEqual([]);
  });

  test('what is refused is one warning each, and the rest is done', () => {
    const conntrack = { ...config.conntrack, tcpBeLiberal: true };
    const liberal = '/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal';
    const { settings, logged, events, host } = kernel(
      { [max]: '65536', [hashsize]: '8192', [oom]: '0', [liberal]: '0' },
      { [max]: 'EACCES', [hashsize]: 'EROFS', [oom]: 'EACCES' },
    );
    setUpHost({ ...config, conntrack, oomScoreAdj: -999 }, host);
    expect(settings[liberal]).toBe('1');
    expect(logged.filter((line) => line.startsWith('warn'))).toEqual([
      expect.stringContaining('oom_score_adj stays as it is'),
      expect.stringMatching(/conntrack settings stay.*nf_conntrack_max: EACCES.*hashsize: EROFS.*--init-only/),
    ]);
    expect(events).toMatchObject([{ reason: 'readOnlySysFS', regarding: { kind: 'Node', name: 'n1' } }]);
  });

  test('a kernel without connection tracking is a warning that says so', () => {
    const { logged, host } = kernel({});
    setUpHost({ ...config, oomScoreAdj: undefined }, host);
    expect(logged).toEqual([expect.stringContaining('this kernel has no such setting')]);
  });

  describe('NodePorts on 127.0.0.1', () => {
    const route = '/proc/sys/net/ipv4/conf/all/route_localnet';
    const wanted = { ...config, mode: 'iptables' as const, conntrack: nothing, oomScoreAdj: undefined };

    test('are allowed in the iptables mode, in the words of kube-proxy', () => {
      const { settings, logged, host } = kernel({ [route]: '0' });
      setUpHost(wanted, host);
      expect(settings[route]).toBe('1');
      expect(logged).toEqual([
        expect.stringMatching(
          /^info: Setting route_localnet=1 to allow node-ports on localhost; to change this either/,
        ),
        `info: kernel settings changed {"changed":["${route}: 0 -> 1"]}`,
      ]);
    });

    test('are allowed when a change of the configuration lets them, and once', () => {
      const { settings, logged, host } = kernel({ [route]: '0' });
      const without = { ...wanted, iptables: { ...iptables, localhostNodePorts: false } };
      setUpAfterChange(without, without, host);
      expect([settings[route], logged]).toEqual(['0', []]);
      setUpAfterChange(without, wanted, host);
      expect(settings[route]).toBe('1');
      setUpAfterChange(wanted, wanted, host);
      expect(logged.filter((line) => line.startsWith('info: Setting route_localnet'))).toHaveLength(1);
    });

    test('cost a warning where that is refused', () => {
      const { logged, host } = kernel({ [route]: '0' }, { [route]: 'EROFS' });
      setUpHost(wanted, host);
      expect(logged.at(-1)).toMatch(/^warn: NodePorts do not answer on 127.0.0.1 .*EROFS.*--init-only/);
    });

    test.each<readonly [string, Partial<typeof wanted> | { readonly mode: 'nftables' }, readonly IpFamily[]]>([
      ['the nftables mode', { mode: 'nftables' }, ipFamilies],
      ['a node without them', { iptables: { ...iptables, localhostNodePorts: false as true } }, ipFamilies],
      ['a machine without IPv4', {}, ['IPv6']],
    ])('are none of the business of %s', (_, changes, families) => {
      const { settings, logged, host } = kernel({ [route]: '0' });
      setUpHost({ ...wanted, ...changes }, { ...host, ipFamilies: families });
      expect([settings[route], logged]).toEqual(['0', []]);
    });
  });
});
