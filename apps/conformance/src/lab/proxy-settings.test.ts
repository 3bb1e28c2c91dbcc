import { ipFamilies } from '@switchyard/core';
import type { ScenarioAgent } from '@switchyard/scenarios';
import { describe, expect, test } from 'vitest';
import { proxyConfigFile, proxyFlags, type ProxySettings } from './proxy-program.ts';

const agent: ScenarioAgent = {
  detectLocal: { kind: 'clusterCIDR' },
  masqueradeAll: false,
  terminatingFallback: 'on',
  nodePortAddresses: 'default',
  localhostNodePorts: true,
  routerIpMode: false,
};

function settings(more: Partial<ScenarioAgent> = {}, others: Partial<ProxySettings> = {}): ProxySettings {
  return {
    agent: { ...agent, ...more },
    mode: 'iptables',
    families: ipFamilies,
    kubeconfig: '/k',
    node: 'node1',
    ...others,
  };
}

/** The flags that a scenario's settings add. */
function added(more: Partial<ScenarioAgent>): readonly string[] {
  const usual = proxyFlags(settings());
  return proxyFlags(settings(more)).filter((flag) => !usual.includes(flag));
}

const file = (given: ProxySettings): Record<string, unknown> =>
  JSON.parse(proxyConfigFile(given)) as Record<string, unknown>;

describe('proxyFlags', () => {
  test('says nothing that is a default', () => {
    expect(proxyFlags(settings())).toEqual([
      '--kubeconfig=/k',
      '--hostname-override=node1',
      '--proxy-mode=iptables',
      '--conntrack-max-per-core=0',
      '--conntrack-min=0',
      '--oom-score-adj=0',
      '--healthz-bind-address=0.0.0.0:10256',
      '--cluster-cidr=10.244.0.0/16,fd00:10:244::/48',
      '--iptables-min-sync-period=1ms',
    ]);
  });

  test.each([
    { more: { masqueradeAll: true }, flags: ['--masquerade-all'] },
    { more: { localhostNodePorts: false }, flags: ['--iptables-localhost-nodeports=false'] },
    { more: { nodePortAddresses: 'primary' }, flags: ['--nodeport-addresses=primary'] },
    { more: { nodePortAddresses: [] }, flags: ['--nodeport-addresses=0.0.0.0/0,::/0'] },
    { more: { nodePortAddresses: ['172.18.0.0/24'] }, flags: ['--nodeport-addresses=172.18.0.0/24'] },
    { more: { detectLocal: { kind: 'none' } }, flags: [] },
    { more: { detectLocal: { kind: 'nodeCIDR' } }, flags: ['--detect-local-mode=NodeCIDR'] },
    {
      more: { detectLocal: { kind: 'bridgeInterface', name: 'cni0' } },
      flags: ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'],
    },
    {
      more: { detectLocal: { kind: 'interfaceNamePrefix', prefix: 'pod' } },
      flags: ['--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=pod'],
    },
  ] as const)('$more adds $flags', ({ more, flags }) => {
    expect(added(more)).toEqual(flags);
  });

  test('a proxy that cannot detect pods gets no CIDR', () => {
    expect(proxyFlags(settings({ detectLocal: { kind: 'none' } })).join(' ')).not.toContain('10.244');
  });

  test('a cluster of IPv6 only listens there', () => {
    const flags = proxyFlags(settings({}, { families: ['IPv6'], mode: 'nftables' }));
    expect(flags).toContain('--healthz-bind-address=[::]:10256');
    expect(flags).toContain('--cluster-cidr=fd00:10:244::/48');
  });
});

describe('proxyConfigFile', () => {
  test('says the same as the flags', () => {
    expect(file(settings({ masqueradeAll: true, nodePortAddresses: 'primary', localhostNodePorts: false }))).toEqual({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      clientConnection: { kubeconfig: '/k' },
      hostnameOverride: 'node1',
      mode: 'iptables',
      conntrack: { maxPerCore: 0, min: 0 },
      oomScoreAdj: 0,
      healthzBindAddress: '0.0.0.0:10256',
      clusterCIDR: '10.244.0.0/16,fd00:10:244::/48',
      nodePortAddresses: ['primary'],
      iptables: { masqueradeAll: true, minSyncPeriod: '1ms', localhostNodePorts: false },
    });
  });

  test('names nftables only in that mode, which older proxies do not know', () => {
    expect(file(settings({}, { mode: 'nftables' }))['nftables']).toEqual({
      masqueradeAll: false,
      minSyncPeriod: '1ms',
    });
    expect(file(settings())).not.toHaveProperty('nftables');
  });

  test.each([
    { detectLocal: { kind: 'nodeCIDR' }, expected: { detectLocalMode: 'NodeCIDR' } },
    {
      detectLocal: { kind: 'bridgeInterface', name: 'cni0' },
      expected: { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'cni0' } },
    },
    {
      detectLocal: { kind: 'interfaceNamePrefix', prefix: 'pod' },
      expected: { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: 'pod' } },
    },
  ] as const)('pods by $detectLocal.kind', ({ detectLocal, expected }) => {
    expect(file(settings({ detectLocal }))).toMatchObject(expected);
    expect(file(settings({ detectLocal }))).not.toHaveProperty('clusterCIDR');
  });
});
