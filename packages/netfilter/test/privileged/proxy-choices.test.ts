import { parseIp, serviceKey, servicePortKey } from '@switchyard/core';
import { createLab, type Lab, type LabNode } from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openProxyChoices } from '../../src/index.ts';
import { endpointChain, serviceChains } from '../../src/iptables/service-chains.ts';

// Rules as kube-proxy writes them, in a kernel; the names of chains are those of a real one.

const { signal } = new AbortController();
const web = servicePortKey(serviceKey('default', 'web'), '', 'TCP');
const place = (address: string, port = 8080) => ({ address: parseIp(address), port });
const [first, second, gone] = [place('10.244.1.74'), place('10.244.2.92'), place('10.244.2.93')];
let lab: Lab;
let node: LabNode;

beforeAll(async () => {
  lab = await createLab({ name: 'choices', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [node] = lab.nodes as [LabNode];
});
afterAll(() => lab?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await node.run('nft', ['flush ruleset']);
});

const netns = (): string => `/run/netns/${node.namespace}`;
const nft = async (text: string): Promise<void> => {
  const { stderr, exitCode } = await node.run('nft', ['-f', '-'], { stdin: text });
  expect(exitCode, stderr).toBe(0);
};

test('nftables, addresses in a map', async () => {
  await nft(`table ip kube-proxy {
    chain service-PFISGYVC-default/web/tcp/ {
      meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.74 . 8080, 1 : 10.244.2.92 . 8080 }
    }
    chain local-PFISGYVC-default/web/tcp/ {
      meta l4proto tcp dnat ip addr . port to numgen random mod 1 map { 0 : 10.244.1.74 . 8080 }
    }
  }`);
  using read = openProxyChoices('IPv4', netns());
  const choices = read(web);
  expect([first, second, gone].map((one) => choices.isChosen('Cluster', one))).toEqual([true, true, false]);
  expect([first, second, gone].map((one) => choices.isChosen('Local', one))).toEqual([true, false, false]);
  const other = read(servicePortKey(serviceKey('default', 'other'), 'http', 'TCP'));
  expect(other.isChosen('Cluster', first)).toBeUndefined();
});

test('nftables, jumps to the chain of an endpoint, IPv6', async () => {
  const chains = ['fd00..1:8080', 'fd00..2:80'].map((one, index) => {
    const [address, port] = one.split(':');
    return `endpoint-AAAAAAA${index}-default/web/tcp/__${address}/${port}`;
  });
  await nft(`table ip6 kube-proxy {
    ${chains.map((chain) => `chain ${chain} {\n meta l4proto tcp counter\n }`).join('\n')}
    chain service-PFISGYVC-default/web/tcp/ {
      numgen random mod 2 vmap { 0 : goto ${chains[0]}, 1 : goto ${chains[1]} }
    }
  }`);
  using read = openProxyChoices('IPv6', netns());
  const choices = read(web);
  const places = [place('fd00::1'), place('fd00::2', 80), place('fd00::2', 8080), place('fd00::3')];
  expect(places.map((one) => choices.isChosen('Cluster', one))).toEqual([true, true, false, false]);
  expect(choices.isChosen('Local', place('fd00::1'))).toBeUndefined();
});

test('iptables with iptables-nft', async () => {
  const { SVC: svc } = serviceChains(web, 'TCP');
  const endpoints = [first, second, gone].map(({ address, port }) => endpointChain(web, 'TCP', `${address}:${port}`));
  const commands = [
    '-N KUBE-SERVICES',
    `-N ${svc}`,
    ...endpoints.map((chain) => `-N ${chain}`),
    `-A KUBE-SERVICES -d 10.96.5.10/32 -p tcp -m tcp --dport 80 -j ${svc}`,
    `-A ${svc} -m statistic --mode random --probability 0.5 -j ${endpoints[0]}`,
    `-A ${svc} -j ${endpoints[1]}`,
    `-A ${endpoints[2]} -p tcp -j DNAT --to-destination 10.244.2.93:8080`,
  ];
  await node.run('iptables-nft-restore', ['--noflush'], { stdin: `*nat\n${commands.join('\n')}\nCOMMIT\n` });
  using read = openProxyChoices('IPv4', netns());
  const choices = read(web);
  expect([first, second, gone].map((one) => choices.isChosen('Cluster', one))).toEqual([true, true, false]);
  expect(choices.isChosen('Local', first)).toBeUndefined();
});

test('without rules of kube-proxy it is an error that says where it looked', () => {
  expect(() => openProxyChoices('IPv4', netns())).toThrow(
    'cannot read the rules of kube-proxy for IPv4: none are in nftables (iptables-legacy and ipvs cannot be read)',
  );
});
