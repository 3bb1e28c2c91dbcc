import type { PodName } from '../sequence-pods.ts';
import type { Condition } from './support/object-factory.ts';
import type { Sequence } from './support/sequence.ts';

type Answer = { readonly status: 200 | 503; readonly localEndpoints: number };

/** Answers to load balancers while endpoints and the proxy start and end. */
export const healthNodePorts: Sequence = {
  name: 'health-node-ports',
  title: 'the healthCheckNodePort counts ready endpoints of this node through every transition, and after a restart',
  why: 'API: healthCheckNodePort; kube-proxy-facts A1 row 21 (terminating endpoints fail it), facts 34 and 36',
  tags: ['health-check', 'terminating', 'restart', 'load-balancer'],
  needs: ['controlProxy', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', hasHealthCheck: true });
    const put = (pods: readonly (readonly [PodName, Condition])[]) =>
      context.put({ endpoints: pods.map(([pod, condition]) => objects.endpoint(service, pod, condition)) });
    await context.begin({ services: [service], endpoints: [] });
    const moments: readonly (readonly [string, readonly (readonly [PodName, Condition])[], Answer])[] = [
      ['one elsewhere', [['far', 'ready']], { status: 503, localEndpoints: 0 }],
      ['one here', [['near', 'ready']], { status: 200, localEndpoints: 1 }],
      [
        'two here',
        [
          ['near', 'ready'],
          ['near2', 'ready'],
          ['far', 'ready'],
        ],
        { status: 200, localEndpoints: 2 },
      ],
      [
        'one of two ends',
        [
          ['near', 'serving-terminating'],
          ['near2', 'ready'],
        ],
        { status: 200, localEndpoints: 1 },
      ],
      [
        'both end',
        [
          ['near', 'serving-terminating'],
          ['near2', 'serving-terminating'],
        ],
        { status: 503, localEndpoints: 0 },
      ],
    ];
    for (const [moment, pods, answer] of moments) {
      await put(pods);
      await context.seeHealth(moment, service, answer);
    }
    const call = { service, by: 'loadBalancerIP', from: 'outside' } as const;
    await context.see({ id: 'both end, but serve', call, expect: objects.forward(['near', 'near2']) });
    await context.proxy.kill();
    await context.seeHealth('the proxy is dead', service, { status: 'closed', localEndpoints: undefined });
    await context.write({ endpoints: objects.endpoints(service, 'near2') });
    await context.startProxy();
    await context.seeHealth('started again, one here', service, { status: 200, localEndpoints: 1 });
    await context.see({ id: 'started again, one here, packets', call, expect: objects.forward(['near2']) });
    await context.put({ services: [objects.service({ type: 'LoadBalancer' })] });
    await context.seeHealth('the external policy is Cluster', service, { status: 'closed', localEndpoints: undefined });
  },
};
