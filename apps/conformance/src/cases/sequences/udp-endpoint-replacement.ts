import { type Call, callName } from './support/object-factory.ts';
import { type Move, seeMoved } from './support/moved.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

/** Conntrack knows a UDP client by its port, and would send its datagrams to a removed pod as long as they continue. */
export const udpEndpointReplacement: Sequence = {
  name: 'udp-endpoint-replacement',
  title:
    'a UDP client that keeps its port follows its endpoint when that is replaced, also when there was none in between',
  why: 'kube-proxy-facts A1 row 32 (stale UDP connection tracking) and fact 66: Services with zero endpoints were left out from 1.32 to 1.36 (k/k#139628)',
  tags: ['udp', 'node-port', 'load-balancer'],
  needs: ['sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'LoadBalancer', protocol: 'UDP' });
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near') });
    const calls: readonly Call[] = [
      { service, by: 'clusterIP', from: 'pod', sourcePort: 9111 },
      { service, by: 'clusterIP', from: 'node', sourcePort: 9112 },
      { service, by: 'nodePort', from: 'outside', sourcePort: 9113 },
      { service, by: 'loadBalancerIP', from: 'outside', sourcePort: 9114 },
    ];
    await seeAll(context, 'first', calls, 'near');
    await context.put({ endpoints: objects.endpoints(service, 'far') });
    await seeAll(context, 'replaced', calls, 'far');
    await context.put({ endpoints: [] });
    await seeAll(context, 'gone', calls, 'refused');
    await context.put({ endpoints: objects.endpoints(service, 'near2') });
    await seeAll(context, 'there again', calls, 'near2');
  },
};

async function seeAll(context: SequenceContext, moment: string, calls: readonly Call[], to: Move['to']): Promise<void> {
  await seeMoved(context, ...calls.map((call) => ({ id: `${moment}/${callName(call)}`, call, to })));
}
