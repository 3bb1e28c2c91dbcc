import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { seeMoved } from './support/moved.ts';
import type { Sequence } from './support/sequence.ts';

/** Endpoints that were removed while no proxy ran. */
export const staleAfterRestart: Sequence = {
  name: 'stale-after-restart',
  title: 'endpoints that went while the proxy was dead are gone after its start',
  why: 'discovery.k8s.io/v1 EndpointSlice: removals are what a dead kube-proxy loses requests by, until it is back (155 to 182 of 250); UDP flows to them too (kube-proxy-facts A1 row 32)',
  tags: ['restart', 'udp', 'node-port'],
  needs: ['controlProxy', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const web = objects.service({ number: 1, type: 'NodePort' });
    const last = objects.service({ number: 2 });
    const dns = objects.service({ number: 3, protocol: 'UDP', type: 'NodePort' });
    const resolver = { service: dns, by: 'clusterIP', from: 'pod', sourcePort: 9101 } as const;
    await context.begin({
      services: [web, last, dns],
      endpoints: [
        ...objects.endpoints(web, 'near', 'far'),
        ...objects.endpoints(last, 'near'),
        ...objects.endpoints(dns, 'near'),
      ],
    });
    await context.see({
      id: 'before/a UDP client that keeps its port',
      call: resolver,
      expect: objects.forward(['near']),
    });
    await context.proxy.kill();
    await context.write({ endpoints: [...objects.endpoints(web, 'far'), ...objects.endpoints(dns, 'far')] });
    await context.see({ id: 'dead/the endpoint is still asked', call: resolver, expect: objects.forward(['near']) });
    await context.startProxy();
    await context.see(
      { id: 'back/NodePort', call: outsideToNodePort(web), expect: objects.forward(['far'], 'masqueraded') },
      { id: 'back/cluster IP', call: podToClusterIp(web), expect: objects.forward(['far']) },
      { id: 'back/a Service without endpoints', call: podToClusterIp(last), expect: { kind: 'reject' } },
    );
    await seeMoved(context, { id: 'back/the UDP client', call: resolver, to: 'far' });
  },
};
