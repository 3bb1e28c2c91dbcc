import { setTimeout as sleep } from 'node:timers/promises';
import { type IpAddress, millis } from '@switchyard/core';
import { createProber, startEchoServer } from '@switchyard/lab';
import { expect } from 'vitest';
import { sendDatagrams, sendLater, sleepingListener, sleepingReceiver, waitForAnswer } from './lossy-programs.ts';
import {
  addressOf,
  attempt,
  foreignRule,
  fromPod,
  type InjectedCause,
  type InjectionPlace,
  serve,
  staleRules,
  timeout,
  unserved,
} from './injection.ts';
import type { GivenService, LossSite } from './loss-site.ts';
import { trackingCauses } from './tracking-causes.ts';
import { untranslatedAnswers } from './untranslated-answers.ts';

const requests = 'IP saddr CALLER meta l4proto { tcp, udp }';

export const injectedCauses: readonly InjectedCause[] = [
  { name: 'no endpoints', cause: 'noEndpoints', why: /usable anywhere/, inject: fromPod(() => []) },
  {
    name: 'endpoint not ready',
    cause: 'noEndpoints',
    why: /is not ready/,
    inject: fromPod((site, ipFamily) => [{ address: addressOf(site.server, ipFamily), conditions: { ready: false } }]),
  },
  {
    name: 'endpoint terminating, and no longer serving',
    cause: 'noEndpoints',
    why: /is terminating and not serving/,
    inject: fromPod((site, ipFamily) => [
      {
        address: addressOf(site.server, ipFamily),
        conditions: { ready: false, serving: false, terminating: true },
      },
    ]),
  },
  {
    name: 'policy Local without an endpoint here',
    cause: 'noLocalEndpoint',
    why: /is on node2/,
    inject: async (site, { ipFamily, service, targetPort }) => {
      const { nodePorts } = await site.make({
        name: service,
        ipFamily,
        targetPort,
        endpoints: [{ address: addressOf(site.remote, ipFamily), node: site.otherNode }],
        spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
      });
      return { send: attempt(site.outside, { address: site.node.addresses[ipFamily] ?? '', port: nodePorts }) };
    },
  },
  {
    name: 'client outside of the source ranges',
    cause: 'sourceNotAllowed',
    why: /in none of the allowed source ranges/,
    inject: async (site, { ipFamily, service, targetPort }) => {
      const ingressIp = ipFamily === 'IPv4' ? '198.51.100.7' : '2001:db8::7';
      await site.make({
        name: service,
        ipFamily,
        targetPort,
        ingressIp,
        endpoints: [{ address: addressOf(site.server, ipFamily) }],
        spec: { type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.0/24', '2001:db8:1::/48'] },
      });
      await site.cluster.lab.routeToNode([ingressIp as IpAddress], site.node); // canonical
      return { send: attempt(site.outside, { address: ingressIp, port: 80 }) };
    },
  },
  {
    name: 'port that the Service does not have',
    cause: 'unknownPort',
    modes: ['nftables'],
    inject: async (site, place) => {
      const clusterIp = await serve(site, place);
      return { send: attempt(site.caller, { address: clusterIp, port: 81 }) };
    },
  },
  foreignRule('before connection tracking', { hook: 'prerouting', priority: -350, rule: `${requests} drop` }),
  foreignRule('before translation', { hook: 'prerouting', priority: -150, rule: `${requests} drop` }),
  foreignRule('when forwarded', { hook: 'forward', rule: `${requests} drop` }),
  foreignRule('when forwarded, with an answer', { hook: 'forward', rule: `${requests} reject` }),
  foreignRule('when it leaves', { hook: 'postrouting', rule: `${requests} drop` }),
  foreignRule('when the node sends', {
    hook: 'output',
    rule: 'IP daddr SERVER meta l4proto { tcp, udp } drop',
    from: 'node',
  }),
  foreignRule('answers', {
    hook: 'forward',
    rule: 'ct direction reply IP saddr SERVER meta l4proto { tcp, udp } drop',
    direction: 'answer',
  }),
  {
    name: 'reverse path filter',
    cause: 'reversePath',
    families: ['IPv4'], // the kernel has none for IPv6
    inject: async (site, place) => {
      const clusterIp = await serve(site, place);
      const source = '10.98.0.1';
      const set = (value: number): string =>
        `for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo ${value} > $file; done`;
      await site.shell(site.callerPod, `ip addr add ${source}/32 dev lo`);
      await site.shell(site.node, set(1));
      return {
        send: attempt(site.caller, { address: clusterIp, port: 80, source }),
        undo: () => site.shell(site.node, set(0)),
      };
    },
  },
  {
    name: 'route that refuses',
    cause: 'noRoute',
    inject: async (site, { ipFamily, service, targetPort }) => {
      const address = ipFamily === 'IPv4' ? '203.0.113.7' : '2001:db8:2::7';
      await site.shell(site.node, `ip route add unreachable ${address}`);
      const made = await site.make({ name: service, ipFamily, targetPort, endpoints: [{ address }] });
      return { send: attempt(site.caller, { address: made.clusterIp, port: 80 }) };
    },
  },
  {
    name: 'deleted pod: its address leads nowhere',
    cause: 'noRoute',
    inject: fromPod((_, ipFamily) => [{ address: ipFamily === 'IPv4' ? '10.244.1.77' : 'fd00:10:244:1::77' }]),
  },
  {
    name: 'next hop that does not answer',
    isOnce: true,
    cause: 'neighbour',
    delay: 4_000, // three requests, a second apart
    inject: fromPod((_, ipFamily) => [{ address: ipFamily === 'IPv4' ? '172.18.0.77' : 'fd00:172:18::77' }]),
  },
  {
    name: 'datagram larger than the MTU of the way',
    isOnce: true,
    cause: 'packetTooBig',
    why: /14\d\d bytes/,
    protocols: ['UDP'],
    inject: async (site, { ipFamily, service, targetPort }) => {
      const address = addressOf(site.server, ipFamily);
      const { clusterIp } = await site.make({ name: service, ipFamily, targetPort, endpoints: [{ address }] });
      const device = /dev (\S+)/.exec(await site.shell(site.node, `ip route get ${address}`))?.[1] ?? '';
      await site.shell(site.node, `ip link set dev ${device} mtu 1280`);
      return {
        send: () => sendDatagrams(site, { address: clusterIp, count: 1, length: 1400 }),
        undo: () => site.shell(site.node, `ip link set dev ${device} mtu 1500`),
      };
    },
  },
  {
    name: 'nothing listens on the target port',
    netns: 'pod',
    cause: 'noListener',
    why: /nothing listens on .*:79\d\d/,
    inject: async (site, place) => {
      const clusterIp = await serve(site, unserved(place));
      return { send: attempt(site.caller, { address: clusterIp, port: 80 }) };
    },
  },
  {
    name: 'application killed while a connection is open',
    netns: 'pod',
    isOnce: true,
    cause: 'applicationGone',
    protocols: ['TCP'],
    inject: async (site, given) => {
      const place = unserved(given);
      const clusterIp = await serve(site, place);
      const application = startEchoServer(site.server, { pod: 'victim', tcp: [place.targetPort] });
      await waitForAnswer(site.caller, { address: clusterIp, port: 80 }, 'victim');
      await sleep(1_200); // attempts before it listened are read and done
      return {
        send: async () => {
          const { ended } = await sendLater(site.callerPod, { address: clusterIp, port: 80 });
          await application.stop(millis(0));
          await ended;
        },
      };
    },
  },
  staleRules(
    'rules of a stopped proxy: a deleted endpoint whose address leads away',
    'staleRule',
    ['TCP'],
    'leadsAway',
  ),
  staleRules('flow that connection tracking leads to a deleted endpoint', 'staleFlow', ['UDP']),
  staleRules('new flow that a stopped proxy leads to a deleted endpoint', 'staleRule', ['TCP', 'UDP']),
  {
    name: 'NodePort that a stopped proxy leads to a pod which has ended, behind the address of the node',
    cause: 'applicationGone',
    protocols: ['TCP'],
    onlyObserved: true,
    inject: async (site, given) => {
      const place = unserved(given); // the application has ended
      const { ipFamily, service } = place;
      const endpoints = [{ address: addressOf(site.server, ipFamily) }];
      const { nodePorts } = await site.make({ ...place, name: service, endpoints, spec: { type: 'NodePort' } });
      await sleep(3_300); // the proxy may have the table of 3 s before
      site.pauseProxy();
      await site.replaceEndpoint(service, addressOf(site.remote, ipFamily));
      const address = site.node.addresses[ipFamily] ?? '';
      return {
        send: attempt(site.outside, { address, port: nodePorts }),
        undo: async () => site.resumeProxy(),
      };
    },
  },
  {
    name: 'address that the node no longer has',
    cause: 'addressGone',
    families: ['IPv4'],
    modes: ['iptables'], // in the others NodePorts are at the primary address only
    delay: 3_000, // until the kernel has no neighbour of this address
    inject: async (site, { ipFamily, service, targetPort }) => {
      const endpoints = [{ address: addressOf(site.server, ipFamily) }];
      const spec = { type: 'NodePort' };
      const { nodePorts } = await site.make({ name: service, ipFamily, targetPort, endpoints, spec });
      const address = '172.18.0.77';
      await site.shell(site.node, `ip addr add ${address}/24 dev eth0`);
      const answer = () => site.outside.probe({ protocol: 'tcp', address, port: nodePorts.TCP, timeout });
      await expect.poll(async () => (await answer()).status).toBe('answered');
      await sleep(1_200); // a reading has the address
      await site.shell(site.node, `ip addr delete ${address}/24 dev eth0`);
      return { send: attempt(site.outside, { address, port: nodePorts }) };
    },
  },
  {
    name: 'pod that reaches itself over a bridge without hairpin mode',
    cause: 'hairpinOff',
    families: ['IPv4'],
    modes: ['nftables', 'iptables'],
    inject: async (site, { ipFamily, service, targetPort }) => {
      const self = await site.cluster.lab.addPod(site.node, 'self');
      startEchoServer(self, { pod: 'self', tcp: [targetPort], udp: [targetPort] });
      const address = addressOf(self, ipFamily);
      const { clusterIp } = await site.make({ name: service, ipFamily, targetPort, endpoints: [{ address }] });
      const port = (await site.shell(site.node, `ip -o route get ${address}`)).match(/ dev (\S+)/)?.[1] ?? '';
      await site.shell(
        site.node,
        [
          'ip link add hairpin type bridge && ip link set hairpin up',
          `ip link set ${port} master hairpin && ip route replace ${address} dev hairpin`,
          'sysctl -q net.bridge.bridge-nf-call-iptables=1',
        ].join(' && '),
      );
      const { signal } = new AbortController();
      const prober = await createProber(self, signal);
      return {
        send: attempt(prober, { address: clusterIp, port: 80 }),
        undo: async () => {
          await prober[Symbol.asyncDispose]();
          await site.shell(site.node, 'sysctl -q net.bridge.bridge-nf-call-iptables=0; ip link delete hairpin');
          await site.cluster.lab.removePod(self);
        },
      };
    },
  },
  ...untranslatedAnswers,
  ...trackingCauses,
  {
    name: 'accept queue of the application full',
    isOnce: true,
    cause: 'acceptQueueFull',
    protocols: ['TCP'],
    delay: 1_000, // namespaces are read once a second
    inject: async (site, given) => {
      const place = unserved(given);
      const clusterIp = await serve(site, place);
      const sleeper = site.server.spawn('perl', ['-e', sleepingListener, String(place.targetPort)], {
        logName: 'sleeper',
      });
      await sleep(300);
      const connect = () => site.caller.probe({ protocol: 'connect', address: clusterIp, port: 80, timeout });
      return {
        send: () => Promise.all(Array.from({ length: 6 }, connect)),
        undo: () => sleeper.stop(millis(0)),
      };
    },
  },
  {
    name: 'receive buffer of the application full',
    netns: 'pod',
    isOnce: true,
    cause: 'receiveBufferFull',
    protocols: ['UDP'],
    inject: async (site, given) => {
      const place = unserved(given);
      const clusterIp = await serve(site, place);
      const sleeper = site.server.spawn('perl', ['-e', sleepingReceiver, String(place.targetPort), place.ipFamily], {
        logName: 'sleeper',
      });
      await sleep(300);
      return {
        send: () => sendDatagrams(site, { address: clusterIp, count: 40, length: 400 }),
        undo: () => sleeper.stop(millis(0)),
      };
    },
  },
];

/** A Service that is in order. */
export function healthyService(site: LossSite, { ipFamily, service, targetPort }: InjectionPlace): GivenService {
  const endpoints = [
    { address: addressOf(site.server, ipFamily) },
    { address: addressOf(site.remote, ipFamily), node: site.otherNode },
  ];
  return { name: service, ipFamily, targetPort, endpoints };
}
