import { podToClusterIp } from './support/cast.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

const tour = ['ClusterIP', 'NodePort', 'LoadBalancer', 'NodePort', 'ClusterIP'] as const;

/** A Service becomes more, and less again, while pods connect to its cluster IP. */
export const serviceTypeTourUnderLoad: Sequence = {
  name: 'service-type-tour-under-load',
  title: 'a Service changes its type there and back; its cluster IP loses nothing, its other frontends come and go',
  why: 'API: spec.type is mutable, and each type has the frontends of the one before (ClusterIP, NodePort, LoadBalancer)',
  tags: ['load', 'node-port', 'load-balancer'],
  needs: ['load', 'sendFromOutside'],
  async run(play) {
    const { cast } = play;
    const service = cast.service();
    await play.begin({ services: [service], endpoints: cast.endpoints(service, 'near', 'far') });
    const inside = podToClusterIp(service);
    await underLoad(play, { id: 'tour', during: 'while the type changes', calls: [inside] }, async () => {
      for (const [index, type] of tour.entries()) {
        await play.put({ services: [cast.service({ type })] });
        const isThere = { nodePort: type !== 'ClusterIP', loadBalancerIP: type === 'LoadBalancer' };
        await play.see(
          { id: `stop ${index + 1}, ${type}/clusterIP`, call: inside, expect: cast.forward(['near', 'far']) },
          ...(['nodePort', 'loadBalancerIP'] as const).map((by) => ({
            id: `stop ${index + 1}, ${type}/${by}`,
            call: { service, by, from: 'outside' } as const,
            expect: isThere[by] ? cast.forward(['near', 'far'], 'masqueraded') : ({ kind: 'pass' } as const),
          })),
        );
      }
    });
  },
};
