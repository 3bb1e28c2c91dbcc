import { expect, test } from 'vitest';
import { readConfig } from './config.ts';

test('reads a question with its flags, and those of kubectl', () => {
  const args = [
    'why',
    'shop-1',
    'cart:http',
    '-n',
    'shop',
    '--probe',
    '--udp',
    '--context',
    'c',
    '--seconds=5',
    '-o',
    'json',
  ];
  expect(readConfig(args, { KUBECTL: '/opt/kubectl' })).toMatchObject({
    command: 'why',
    operands: ['shop-1', 'cart:http'],
    namespace: 'shop',
    probes: 10,
    protocol: 'UDP',
    seconds: 5,
    isJson: true,
    kubectl: { file: '/opt/kubectl', flags: ['--context=c'] },
  });
});

test('has defaults', () => {
  expect(readConfig(['status'], {})).toMatchObject({
    agents: {
      given: [],
      namespace: 'kube-system',
      selector: undefined,
      port: undefined,
    },
    kubectl: { file: 'kubectl', flags: [] },
    protocol: 'TCP',
    probes: 0,
  });
});

test('reads what a rollout check is to assume', () => {
  const flags = [
    '--rate=100',
    '--proxy=kube-proxy:1.25',
    '--proxy-delay=3s',
    '--load-balancer=oci-lb',
    '--drain-time',
    '500ms',
  ];
  expect(readConfig(['rollout', 'check', 'deployment/web', ...flags], {})).toMatchObject({
    command: 'rollout',
    operands: ['check', 'deployment/web'],
    rollout: { rate: 100, proxy: 'kube-proxy:1.25', proxyDelay: 3000, loadBalancer: 'oci-lb', drain: 500 },
  });
  expect(readConfig(['rollout', 'check', 'deployment/web'], {})?.rollout).toEqual({
    rate: 20,
    proxy: undefined,
    proxyDelay: undefined,
    loadBalancer: undefined,
    drain: undefined,
  });
});

test('reads how to watch a rollout', () => {
  const flags = ['--restart', '--url=http://10.96.0.20/', '--html=page.html'];
  const { watch, rollout, timeout } = readConfig(['rollout', 'watch', 'deployment/web', ...flags], {}) ?? {};
  expect(watch).toEqual({ restart: true, url: new URL('http://10.96.0.20/'), html: 'page.html' });
  expect(rollout?.rate).toBe(50);
  expect(timeout).toBe(600);
});

test.each([[[]], [['--help']], [['help']], [['why', '-h']]])('%j shows the help', (args) => {
  expect(readConfig(args, {})).toBeUndefined();
});

test.each([
  [['look'], 'unknown command "look"'],
  [['why', 'pod'], 'usage: kubectl switchyard why POD SERVICE[:PORT]; got 1 arguments'],
  [
    ['why', 'pod', 'service', '--from-outside', '192.0.2.1'],
    'usage: kubectl switchyard why SERVICE[:PORT]; got 2 arguments',
  ],
  [['losses', 'x'], 'usage: kubectl switchyard losses; got 1 arguments'],
  [['losses', '--seconds', '1.5'], '--seconds "1.5" is no number from 1 to 3600'],
  [['why', 'pod', 'service', '--probes', '21'], '--probes "21" is no number from 1 to 20'],
  [['status', '--agent-port', '70000'], '--agent-port "70000" is no number from 1 to 65535'],
  [['status', '-o', 'yaml'], '--output "yaml" is neither json nor text'],
  [['rollout', 'check'], 'usage: kubectl switchyard rollout check|watch deployment/NAME; got 1 arguments'],
  [['rollout', 'check', 'deployment/web', '--drain-time=5'], '--drain-time "5" is no duration such as 10s or 500ms'],
  [['rollout', 'watch', 'deployment/web', '--url=10.96.0.20:80'], '--url "10.96.0.20:80" is no URL such as http'],
  [['rollout', 'watch', 'deployment/web', '--timeout=1801'], '--timeout "1801" is no number from 1 to 1800'],
  [['rollout', 'watch', 'deployment/web', '--rate=1001'], '--rate "1001" is no number from 1 to 1000'],
  [['status', '--colour'], "Unknown option '--colour'"],
])('%j is refused', (args, reason) => {
  expect(() => readConfig(args, {})).toThrow(reason);
});
