import { podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

const tour = ['ClusterIP', 'NodePort', 'LoadBalancer', 'NodePort', 'ClusterIP'] as const;

/** A Service changes its type up and down while pods connect to its cluster IP. */
export const serviceTypeTourUnderLoad: Sequence = {
  name: 'service-type-tour-under-load',
  title: 'a Service changes its type there and back; its cluster IP loses nothing, its other frontends come and go',
  why: 'API: spec.type is mutable, and each type has the frontends of the one before (ClusterIP, NodePort, LoadBalancer)',
  tags: ['load', 'node-port', 'load-balancer'],
  needs: ['load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service();
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const inside = podToClusterIp(service);
    await underLoad(context, { id: 'tour', during: 'while the type changes', calls: [inside] }, async () => {
      for (const [index, type] of tour.entries()) {
        await context.put({ services: [objects.service({ type })] });
        const isThere = { nodePort: type !== 'ClusterIP', loadBalancerIP: type === 'LoadBalancer' };
        await context.see(
          { id: `stop ${index + 1}, ${type}/clusterIP`, call: inside, expect: objects.forward(['near', 'far']) },
          ...(['nodePort', 'loadBalancerIP'] as const).map((by) => ({
            id: `stop ${index + 1}, ${type}/${by}`,
            call: { service, by, from: 'outside' } as const,
            expect: isThere[by] ? objects.forward(['near', 'far'], 'masqueraded') : ({ kind: 'pass' } as const),
          })),
        );
      }
    });
  },
};
