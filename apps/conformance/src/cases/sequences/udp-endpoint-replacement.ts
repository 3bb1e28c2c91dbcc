import { type Call, callName } from './support/cast.ts';
import { type Move, seeMoved } from './support/moved.ts';
import type { Play } from './support/play.ts';
import type { Sequence } from './support/sequence.ts';

/** Conntrack knows a UDP client by its port, and would send its datagrams to a removed pod as long as they continue. */
export const udpEndpointReplacement: Sequence = {
  name: 'udp-endpoint-replacement',
  title:
    'a UDP client that keeps its port follows its endpoint when that is replaced, also when there was none in between',
  why: 'kube-proxy-facts A1 row 32 (stale UDP connection tracking) and fact 66: Services with zero endpoints were left out from 1.32 to 1.36 (k/k#139628)',
  tags: ['udp', 'node-port', 'load-balancer'],
  needs: ['sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const service = cast.service({ type: 'LoadBalancer', protocol: 'UDP' });
    await play.begin({ services: [service], endpoints: cast.endpoints(service, 'near') });
    const calls: readonly Call[] = [
      { service, by: 'clusterIP', from: 'pod', sourcePort: 9111 },
      { service, by: 'clusterIP', from: 'node', sourcePort: 9112 },
      { service, by: 'nodePort', from: 'outside', sourcePort: 9113 },
      { service, by: 'loadBalancerIP', from: 'outside', sourcePort: 9114 },
    ];
    await seeAll(play, 'first', calls, 'near');
    await play.put({ endpoints: cast.endpoints(service, 'far') });
    await seeAll(play, 'replaced', calls, 'far');
    await play.put({ endpoints: [] });
    await seeAll(play, 'gone', calls, 'refused');
    await play.put({ endpoints: cast.endpoints(service, 'near2') });
    await seeAll(play, 'there again', calls, 'near2');
  },
};

async function seeAll(play: Play, moment: string, calls: readonly Call[], to: Move['to']): Promise<void> {
  await seeMoved(play, ...calls.map((call) => ({ id: `${moment}/${callName(call)}`, call, to })));
}
