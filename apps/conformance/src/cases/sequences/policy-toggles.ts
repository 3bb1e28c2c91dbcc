import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

/** Changes from Cluster to Local and back; the last one stays. */
const policies = ['Local', 'Cluster', 'Local', 'Cluster', 'Local'] as const;

/** The external policy changes back and forth under load. */
export const etpToggleUnderLoad: Sequence = {
  name: 'etp-toggle-under-load',
  title: 'externalTrafficPolicy changes back and forth and loses no connection where this node has an endpoint',
  why: 'API: externalTrafficPolicy is mutable; Local keeps to this node and to the client address, Cluster to neither (kube-proxy-facts A1 row 17)',
  tags: ['etp-local', 'load', 'node-port', 'load-balancer'],
  needs: ['load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const withPolicy = (externalTrafficPolicy: 'Cluster' | 'Local') =>
      objects.service({ type: 'LoadBalancer', externalTrafficPolicy });
    const service = withPolicy('Cluster');
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const calls = [outsideToNodePort(service), { service, by: 'loadBalancerIP', from: 'outside' }] as const;
    await underLoad(context, { id: 'toggled', during: 'while the policy changes five times', calls }, async () => {
      for (const [index, policy] of policies.entries()) {
        await context.put({ services: [withPolicy(policy)] });
        const expect = policy === 'Local' ? objects.forward(['near']) : objects.forward(['near', 'far'], 'masqueraded');
        await context.see(
          ...calls.map((call) => ({ id: `change ${index + 1} to ${policy}/${call.by}`, call, expect })),
        );
      }
    });
  },
};

/** The internal policy changes back and forth under load. */
export const itpToggleUnderLoad: Sequence = {
  name: 'itp-toggle-under-load',
  title: 'internalTrafficPolicy changes back and forth and loses no connection where this node has an endpoint',
  why: 'KEP-2086, API: internalTrafficPolicy is mutable; it is for the cluster IP, not for external frontends (kube-proxy-facts A1 row 16)',
  tags: ['itp-local', 'load', 'node-port'],
  needs: ['load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const withPolicy = (internalTrafficPolicy: 'Cluster' | 'Local') =>
      objects.service({ type: 'NodePort', internalTrafficPolicy });
    const service = withPolicy('Cluster');
    await context.begin({ services: [service], endpoints: objects.endpoints(service, 'near', 'far') });
    const inside = podToClusterIp(service);
    const outside = outsideToNodePort(service);
    const during = 'while the policy changes five times';
    await underLoad(context, { id: 'toggled', during, calls: [inside, outside] }, async () => {
      for (const [index, policy] of policies.entries()) {
        await context.put({ services: [withPolicy(policy)] });
        const id = `change ${index + 1} to ${policy}`;
        await context.see(
          {
            id: `${id}/clusterIP`,
            call: inside,
            expect: objects.forward(policy === 'Local' ? ['near'] : ['near', 'far']),
          },
          { id: `${id}/nodePort`, call: outside, expect: objects.forward(['near', 'far'], 'masqueraded') },
        );
      }
    });
  },
};
