import { type Call, callName, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { exchange, type Held, hold, release } from './support/held.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

/** The decision taken when a connection is made holds for its whole life. */
export const holdOpen: Sequence = {
  name: 'hold-open',
  title: 'established TCP connections outlive every change of their Service and a restart of the proxy, idle or not',
  why: 'kube-proxy-facts A1 row 22 and fact 68: flows to an endpoint that is gone survive; fact 53: only new connections are refused or dropped',
  tags: ['hold-open', 'restart', 'node-port', 'load-balancer', 'source-ranges'],
  needs: ['holdConnections', 'controlProxy', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'LoadBalancer' });
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const calls: readonly Call[] = [
      podToClusterIp(service),
      { service, by: 'clusterIP', from: 'node' },
      outsideToNodePort(service),
      { service, by: 'loadBalancerIP', from: 'outside' },
      { service, by: 'nodePort', from: 'pod' },
      { service, by: 'loadBalancerIP', from: 'pod' },
    ];
    const [active, idle] = [await holdEach(context, calls, 'active'), await holdEach(context, calls, 'idle')];
    const guarded = objects.service({ type: 'LoadBalancer', loadBalancerSourceRanges: ['172.18.0.50/32'] });
    const local = objects.service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['the source ranges leave the client out', () => context.put({ services: [guarded] })],
      ['the external policy is Local', () => context.put({ services: [local] })],
      ['both endpoints are replaced', () => context.put({ endpoints: objects.endpoints(service, 'near2', 'far2') })],
      ['the Service is refused', () => context.put({ services: [service], endpoints: [] })],
      ['the proxy was killed and started', () => restart(context)],
      ['there are endpoints again', () => context.put({ endpoints: objects.endpoints(service, 'near2') })],
    ];
    for (const [moment, change] of changes) {
      await change();
      await exchange(context, moment, active);
    }
    await exchange(context, 'after all that', idle);
    await release([...active, ...idle]);
  },
};

function holdEach(context: SequenceContext, calls: readonly Call[], how: string): Promise<readonly Held[]> {
  return Promise.all(calls.map((call) => hold(context, call, `${how}, ${callName(call)}`)));
}

async function restart(context: SequenceContext): Promise<void> {
  await context.proxy.kill();
  await context.startProxy();
}
