import { outsideToNodePort, podToClusterIp } from './support/cast.ts';
import { seeMoved } from './support/moved.ts';
import type { Sequence } from './support/sequence.ts';

/** Endpoints that were removed while no proxy ran. */
export const staleAfterRestart: Sequence = {
  name: 'stale-after-restart',
  title: 'endpoints that went while the proxy was dead are gone after its start',
  why: 'discovery.k8s.io/v1 EndpointSlice: removals are what a dead kube-proxy loses requests by, until it is back (155 to 182 of 250); UDP flows to them too (kube-proxy-facts A1 row 32)',
  tags: ['restart', 'udp', 'node-port'],
  needs: ['controlProxy', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const web = cast.service({ number: 1, type: 'NodePort' });
    const last = cast.service({ number: 2 });
    const dns = cast.service({ number: 3, protocol: 'UDP', type: 'NodePort' });
    const resolver = { service: dns, by: 'clusterIP', from: 'pod', sourcePort: 9101 } as const;
    await play.begin({
      services: [web, last, dns],
      endpoints: [
        ...cast.endpoints(web, 'near', 'far'),
        ...cast.endpoints(last, 'near'),
        ...cast.endpoints(dns, 'near'),
      ],
    });
    await play.see({ id: 'before/a UDP client that keeps its port', call: resolver, expect: cast.forward(['near']) });
    await play.proxy.kill();
    await play.write({ endpoints: [...cast.endpoints(web, 'far'), ...cast.endpoints(dns, 'far')] });
    await play.see({ id: 'dead/the endpoint is still asked', call: resolver, expect: cast.forward(['near']) });
    await play.startProxy();
    await play.see(
      { id: 'back/NodePort', call: outsideToNodePort(web), expect: cast.forward(['far'], 'masqueraded') },
      { id: 'back/cluster IP', call: podToClusterIp(web), expect: cast.forward(['far']) },
      { id: 'back/a Service without endpoints', call: podToClusterIp(last), expect: { kind: 'reject' } },
    );
    await seeMoved(play, { id: 'back/the UDP client', call: resolver, to: 'far' });
  },
};
