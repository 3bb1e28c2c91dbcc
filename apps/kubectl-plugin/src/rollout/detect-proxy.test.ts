import type { DaemonSet, Node } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { detectProxy, namedProxy } from './detect-proxy.ts';

function daemonSet(
  name: string,
  image: string,
  more: { readonly component?: string; readonly desired?: number } = {},
): DaemonSet {
  const labels = { 'app.kubernetes.io/component': more.component ?? name };
  return {
    metadata: { name },
    spec: { selector: {}, template: { metadata: { labels }, spec: { containers: [{ name: 'proxy', image }] } } },
    status: {
      currentNumberScheduled: 0,
      desiredNumberScheduled: more.desired ?? 2,
      numberMisscheduled: 0,
      numberReady: 0,
    },
  };
}

const node = (kubeletVersion: string): Node => ({ metadata: { name: 'n' }, status: { nodeInfo: { kubeletVersion } } });
const nodes = [node('v1.31.2+k3s1'), node('v1.33.0')];
const cilium = daemonSet('cilium', 'quay.io/cilium/cilium:v1.18.1@sha256:abc');

test.each<
  [what: string, daemonSets: readonly DaemonSet[], replacement: string | undefined, name: string, timing: string]
>([
  [
    'kube-proxy of kubeadm',
    [daemonSet('kube-proxy', 'registry.k8s.io/kube-proxy:v1.33.2')],
    undefined,
    'kube-proxy 1.33',
    'kube-proxy',
  ],
  [
    'an old one',
    [daemonSet('kube-proxy', 'registry.k8s.io/kube-proxy:v1.25.16')],
    undefined,
    'kube-proxy 1.25',
    'kube-proxy-1.25',
  ],
  [
    'that of EKS',
    [daemonSet('kube-proxy', '602.dkr.ecr.eu-west-1.amazonaws.com/eks/kube-proxy:v1.29.0-minimal-eksbuild.1')],
    undefined,
    'kube-proxy 1.29',
    'kube-proxy',
  ],
  [
    'one by digest, of the kubelets’ version',
    [daemonSet('kube-proxy', 'kube-proxy@sha256:abc')],
    undefined,
    'kube-proxy 1.31',
    'kube-proxy',
  ],
  ['Cilium alone', [cilium], undefined, 'cilium 1.18', 'cilium'],
  [
    'Cilium in the place of kube-proxy',
    [daemonSet('kube-proxy', 'kube-proxy:v1.33.2'), cilium],
    'true',
    'cilium 1.18',
    'cilium',
  ],
  [
    'Cilium beside kube-proxy',
    [daemonSet('kube-proxy', 'kube-proxy:v1.33.2'), cilium],
    'false',
    'kube-proxy 1.33',
    'kube-proxy',
  ],
  [
    'an older Cilium beside a kube-proxy that is turned off',
    [daemonSet('kube-proxy', 'kube-proxy:v1.33.2', { desired: 0 }), daemonSet('cilium', 'cilium/cilium:v1.16.3')],
    'partial',
    'cilium 1.16',
    'cilium-1.17',
  ],
  ['Switchyard', [daemonSet('switchyard', 'switchyard/agent-nftables:0.1.0')], undefined, 'switchyard', 'switchyard'],
  [
    'Switchyard with the name of kube-proxy',
    [daemonSet('kube-proxy', 'r.example/switchyard/agent-iptables:0.1.0')],
    undefined,
    'switchyard-iptables',
    'switchyard-iptables',
  ],
  [
    'kube-proxy with our observer',
    [
      daemonSet('switchyard-observer', 'switchyard/agent-ebpf:0.1.0', { component: 'observer' }),
      daemonSet('kube-proxy', 'kube-proxy:v1.34.0'),
    ],
    undefined,
    'kube-proxy 1.34',
    'kube-proxy',
  ],
])('detects %s', (_, daemonSets, kubeProxyReplacement, name, timing) => {
  expect(detectProxy({ daemonSets, kubeProxyReplacement, nodes })).toMatchObject({ name, timing, isAssumed: false });
});

test.each([
  ['no DaemonSet of kube-system is a known proxy', [daemonSet('coredns', 'coredns:1.11')]],
  ['DaemonSets of kube-system cannot be read', undefined],
])('takes a cluster for kube-proxy of the oldest kubelet if %s', (from, daemonSets) => {
  const expected = { name: 'kube-proxy 1.31', timing: 'kube-proxy', from, isAssumed: true };
  expect(detectProxy({ daemonSets, kubeProxyReplacement: undefined, nodes })).toEqual(expected);
});

test.each([
  ['kube-proxy', 'kube-proxy'],
  ['kube-proxy:1.24', 'kube-proxy-1.25'],
  ['kube-proxy:v1.36.2', 'kube-proxy'],
  ['cilium:1.17', 'cilium-1.17'],
  ['cilium:1.19', 'cilium'],
  ['switchyard', 'switchyard'],
])('--proxy %s has the timing of %s', (text, timing) => {
  expect(namedProxy(text)).toMatchObject({ timing, from: '--proxy' });
});

test.each(['calico', 'kube-proxy:new', ''])('--proxy %j is refused', (text) => {
  expect(() => namedProxy(text)).toThrow(/not one of kube-proxy, cilium, switchyard, switchyard-iptables/);
});
