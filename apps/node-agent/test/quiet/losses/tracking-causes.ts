import type { LabHost, ProbeResult } from '@switchyard/lab';
import { enterFlows, flushFlows } from './conntrack-entries.ts';
import { addressOf, attempt, type InjectedCause, type InjectionPlace, serve } from './injection.ts';
import { manyFlows, sendLater, type ServedPlace } from './lossy-programs.ts';
import type { LossSite } from './loss-site.ts';

/** Causes that connection tracking has. */
export const trackingCauses: readonly InjectedCause[] = [
  {
    name: 'connection tracking full',
    isOnce: true,
    cause: 'conntrackFull',
    families: ['IPv4'],
    modes: ['nftables', 'iptables'],
    inject: async (site, place) => {
      const clusterIp = await serve(site, place);
      const max = Number(await site.shell(site.node, 'cat /proc/sys/net/netfilter/nf_conntrack_max'));
      const { signal } = new AbortController();
      await enterFlows(site.node, manyFlows(max), signal);
      const send = attempt(site.caller, { address: clusterIp, port: 80 });
      return {
        send: async (protocol) => {
          for (let tries = 0; tries < 10; tries++) {
            await enterFlows(site.node, manyFlows(1000, { from: max }), signal); // in place of flows that have ended
            const { status } = (await send(protocol)) as ProbeResult;
            if (status !== 'answered') return; // else one ended just now
          }
        },
        undo: async () => flushFlows(site.node),
      };
    },
  },
  {
    name: 'clash of a new flow with others: no source port is left',
    isOnce: true,
    cause: 'conntrackClash',
    netns: 'node',
    modes: ['nftables', 'iptables'], // in the ebpf mode the client sends to the endpoint itself
    inject: async (site, place) => {
      const clusterIp = await serve(site, place);
      const direct = { address: addressOf(site.server, place.ipFamily), port: place.targetPort };
      return {
        send: async (protocol) => {
          for (const sourcePorts of lowPorts) {
            await Promise.all(
              sourcePorts.map((sourcePort) => attempt(site.caller, { ...direct, sourcePort })(protocol)),
            );
          }
          return attempt(site.caller, { address: clusterIp, port: 80, sourcePort: 1023 })(protocol);
        },
      };
    },
  },
  lostConnection('that a rule of the proxy drops', {
    modes: ['iptables'], // elsewhere it leaves the node with the Service's address
    reach: async (site, place) => ({ from: site.callerPod, address: await serve(site, place), port: 80 }),
  }),
  lostConnection('whose address has no route', {
    modes: ['nftables', 'iptables'],
    reach: async (site, place) => {
      const address = await serve(site, place);
      await site.shell(site.node, `ip route add unreachable ${address}`);
      return { from: site.callerPod, address, port: 80 };
    },
  }),
  lostConnection('to a NodePort', {
    modes: ['nftables', 'iptables'],
    reach: async (site, { ipFamily, service, targetPort }) => {
      const endpoints = [{ address: addressOf(site.server, ipFamily) }];
      const spec = { type: 'NodePort' };
      const { nodePorts } = await site.make({ name: service, ipFamily, targetPort, endpoints, spec });
      return { from: site.cluster.lab.client, address: site.node.addresses[ipFamily] ?? '', port: nodePorts.TCP };
    },
  }),
];

interface LostConnection extends Required<Pick<InjectedCause, 'modes'>> {
  /** Makes a Service. Resolves with its address and a client. */
  readonly reach: (site: LossSite, place: InjectionPlace) => Promise<ServedPlace & { readonly from: LabHost }>;
}

/** Connection tracking loses a connection on which the client sends later. In the ebpf mode it translates none. */
function lostConnection(name: string, { modes, reach }: LostConnection): InjectedCause {
  return {
    name: `segment of a connection that connection tracking has lost: one ${name}`,
    netns: 'node',
    isOnce: true,
    cause: 'invalidSegment',
    protocols: ['TCP'],
    modes,
    inject: async (site, place) => {
      const { from, ...target } = await reach(site, place);
      return {
        send: async () => {
          const { ended } = await sendLater(from, target);
          await setLoose(site, 0);
          flushFlows(site.node);
          await ended;
        },
        undo: () => setLoose(site, 1),
      };
    },
  };
}

/** All ports of which the kernel chooses one for a flow from 600 to 1023 whose own is taken (Linux 5.9 to 6.18), in parts. */
const lowPorts: readonly (readonly number[])[] = Array.from({ length: 8 }, (_, part) =>
  Array.from({ length: 53 }, (_, index) => 600 + part * 53 + index),
);

/** Whether connection tracking takes a segment in the middle of a connection for the first of a new flow. */
function setLoose({ shell, node }: LossSite, value: 0 | 1): Promise<string> {
  return shell(node, `echo ${value} > /proc/sys/net/netfilter/nf_conntrack_tcp_loose`);
}
