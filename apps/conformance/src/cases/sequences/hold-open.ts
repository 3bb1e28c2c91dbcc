import { type Call, callName, outsideToNodePort, podToClusterIp } from './support/cast.ts';
import { exchange, type Held, hold, release } from './support/held.ts';
import type { Play } from './support/play.ts';
import type { Sequence } from './support/sequence.ts';

/** The decision taken when a connection is made holds for its whole life. */
export const holdOpen: Sequence = {
  name: 'hold-open',
  title: 'established TCP connections outlive every change of their Service and a restart of the proxy, idle or not',
  why: 'kube-proxy-facts A1 row 22 and fact 68: flows to an endpoint that is gone survive; fact 53: only new connections are refused or dropped',
  tags: ['hold-open', 'restart', 'node-port', 'load-balancer', 'source-ranges'],
  needs: ['holdConnections', 'controlProxy', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const service = cast.service({ type: 'LoadBalancer' });
    await play.begin({ services: [service], endpoints: cast.endpoints(service, 'near', 'far') });
    const calls: readonly Call[] = [
      podToClusterIp(service),
      { service, by: 'clusterIP', from: 'node' },
      outsideToNodePort(service),
      { service, by: 'loadBalancerIP', from: 'outside' },
      { service, by: 'nodePort', from: 'pod' },
      { service, by: 'loadBalancerIP', from: 'pod' },
    ];
    const [active, idle] = [await holdEach(play, calls, 'active'), await holdEach(play, calls, 'idle')];
    const guarded = cast.service({ type: 'LoadBalancer', loadBalancerSourceRanges: ['172.18.0.50/32'] });
    const local = cast.service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['the source ranges leave the client out', () => play.put({ services: [guarded] })],
      ['the external policy is Local', () => play.put({ services: [local] })],
      ['both endpoints are replaced', () => play.put({ endpoints: cast.endpoints(service, 'near2', 'far2') })],
      ['the Service is refused', () => play.put({ services: [service], endpoints: [] })],
      ['the proxy was killed and started', () => restart(play)],
      ['there are endpoints again', () => play.put({ endpoints: cast.endpoints(service, 'near2') })],
    ];
    for (const [moment, change] of changes) {
      await change();
      await exchange(play, moment, active);
    }
    await exchange(play, 'after all that', idle);
    await release([...active, ...idle]);
  },
};

function holdEach(play: Play, calls: readonly Call[], how: string): Promise<readonly Held[]> {
  return Promise.all(calls.map((call) => hold(play, call, `${how}, ${callName(call)}`)));
}

async function restart(play: Play): Promise<void> {
  await play.proxy.kill();
  await play.startProxy();
}
