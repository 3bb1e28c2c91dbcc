import type { LabNode } from '@switchyard/lab';
import { expect, test } from 'vitest';
import { scenarioCase } from '../testing/cases.ts';
import { foreignProxy } from './proxy-program.ts';

const { agent } = scenarioCase('a').scenario;
const node = { nodeName: 'node1' } as LabNode; // all that a command line takes of it
const place = { node, kubeconfig: '/run/k', config: '/run/a b', flags: ['--x=1', "--y=it's"] };

test.each([
  { command: 'kp {flags}', line: String.raw`exec kp --x=1 '--y=it'\''s'` },
  { command: 'kp --config={config} --mode {mode}', line: "exec kp --config='/run/a b' --mode nftables" },
  { command: 'kp {kubeconfig} {node} {node} {a,b} ${mode}', line: 'exec kp /run/k node1 node1 {a,b} ${mode}' },
])('$command becomes $line', ({ command, line }) => {
  const proxy = foreignProxy({ command, name: undefined, dataplane: 'nftables' });
  expect(proxy.command(place, agent)).toEqual(['sh', '-c', line]);
});

test.each([
  { command: '  ', text: 'is empty' },
  { command: 'kp --config={konfig}', text: 'has {konfig}, and only {kubeconfig} {config} {flags} {node} {mode}' },
])('the command "$command" is refused: $text', ({ command, text }) => {
  expect(() => foreignProxy({ command, name: undefined, dataplane: 'iptables' })).toThrow(text);
});

test.each([
  { command: '/usr/bin/kube-proxy -v=2', name: undefined, expected: 'kube-proxy' },
  { command: '/usr/bin/kube-proxy', name: 'kube-proxy-1.36', expected: 'kube-proxy-1.36' },
])('$command named $name is called $expected', ({ command, name, expected }) => {
  expect(foreignProxy({ command, name, dataplane: 'iptables' }).about).toEqual({
    name: expected,
    dataplane: 'iptables',
    command,
  });
});

test('the terminating fallback can be switched off in Switchyard only', () => {
  const proxy = foreignProxy({ command: 'kp', name: undefined, dataplane: 'iptables' });
  expect(proxy.lacks(agent)).toBeUndefined();
  expect(proxy.lacks({ ...agent, terminatingFallback: 'off' })).toContain('only Switchyard');
  expect(proxy.lacks({ ...agent, routerIpMode: true })).toContain('only Switchyard');
});
