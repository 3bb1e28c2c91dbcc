import { addressOf, attempt, ipWord, type InjectedCause, serve } from './injection.ts';
import { waitForAnswer } from './lossy-programs.ts';

/** Answers that reach the client with the endpoint's address. */
export const untranslatedAnswers: readonly InjectedCause[] = [
  {
    name: 'answer takes a way around the node',
    netns: 'pod',
    cause: 'answerNotTranslated',
    direction: 'answer',
    why: /got an answer from .* itself/,
    modes: ['nftables', 'iptables'], // in the ebpf mode the client sends to the endpoint itself
    inject: async (site, place) => {
      const clusterIp = await serve(site, place);
      const caller = addressOf(site.callerPod, place.ipFamily);
      const mac = '02:00:00:00:00:01';
      const link = `ip link add around type veth peer name around address ${mac} netns ${site.callerPod.namespace}`;
      await site.shell(site.server, `${link} && ip link set around up`);
      await site.shell(site.callerPod, 'ip link set around up');
      await site.shell(
        site.server,
        `ip neigh add ${caller} lladdr ${mac} dev around && ip route add ${caller} dev around`,
      );
      return {
        send: attempt(site.caller, { address: clusterIp, port: 80 }),
        undo: () => site.shell(site.server, 'ip link delete around'),
      };
    },
  },
  {
    name: 'missing masquerade on the node that translates',
    netns: 'pod',
    cause: 'answerNotTranslated',
    direction: 'answer',
    why: /got an answer from .* itself/,
    modes: ['nftables', 'iptables'], // in the ebpf mode programs masquerade, before any rule
    inject: async (site, { ipFamily, service, targetPort }) => {
      const endpoints = [{ address: addressOf(site.server, ipFamily) }];
      const spec = { type: 'NodePort' };
      const { nodePorts } = await site.make({ name: service, ipFamily, targetPort, endpoints, spec });
      const address = site.otherNode.addresses[ipFamily] ?? '';
      await waitForAnswer(site.caller, { address, port: nodePorts.TCP }, site.server.name); // the other node has it, too
      const caller = addressOf(site.callerPod, ipFamily);
      const rule = `${ipWord(ipFamily)} saddr ${caller} snat to ${caller}`; // the first translation of a source counts
      const chain = `chain c { type nat hook postrouting priority 90 ; ${rule} ; }`;
      await site.shell(site.otherNode, `nft 'table ${ipWord(ipFamily)} other { ${chain} ; }'`);
      return {
        send: attempt(site.caller, { address, port: nodePorts }),
        undo: () => site.shell(site.otherNode, `nft delete table ${ipWord(ipFamily)} other`),
      };
    },
  },
];
