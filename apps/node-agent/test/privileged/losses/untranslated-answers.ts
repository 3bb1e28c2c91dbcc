import { addressOf, attempt, type InjectedCause, serve } from './injection.ts';

/** Answers that reach the client with the endpoint's address. */
export const untranslatedAnswers: readonly InjectedCause[] = [
  {
    name: 'answer takes a way around the node',
    netns: 'pod',
    cause: 'answerNotTranslated',
    direction: 'answer',
    why: /got an answer from .* itself/,
    protocols: ['TCP'],
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
];
