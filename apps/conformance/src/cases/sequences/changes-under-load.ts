import type { Expectation, ScenarioEndpoint } from '@switchyard/scenarios';
import { underLoad } from './support/load.ts';
import { outsideToLoadBalancer, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import type { Sequence } from './support/sequence-context.ts';

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
    const service = await context.serve({ type: 'LoadBalancer' }, 'near', 'far');
    const calls = [outsideToNodePort(service), outsideToLoadBalancer(service)];
    await underLoad(context, { id: 'toggled', during: 'while the policy changes five times', calls }, async () => {
      for (const [index, externalTrafficPolicy] of policies.entries()) {
        await context.put({ services: [objects.service({ type: 'LoadBalancer', externalTrafficPolicy })] });
        const isLocal = externalTrafficPolicy === 'Local';
        const expect = isLocal ? objects.direct('near') : objects.masqueraded('near', 'far');
        const id = `change ${index + 1} to ${externalTrafficPolicy}`;
        await context.see(...calls.map((call) => [`${id}/${call.by}`, call, expect] as const));
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
    const service = await context.serve({ type: 'NodePort' }, 'near', 'far');
    const [inside, outside] = [podToClusterIp(service), outsideToNodePort(service)];
    const load = { id: 'toggled', during: 'while the policy changes five times', calls: [inside, outside] };
    await underLoad(context, load, async () => {
      for (const [index, internalTrafficPolicy] of policies.entries()) {
        await context.put({ services: [objects.service({ type: 'NodePort', internalTrafficPolicy })] });
        const id = `change ${index + 1} to ${internalTrafficPolicy}`;
        const reached = internalTrafficPolicy === 'Local' ? objects.direct('near') : objects.direct('near', 'far');
        await context.see(
          [`${id}/clusterIP`, inside, reached],
          [`${id}/nodePort`, outside, objects.masqueraded('near', 'far')],
        );
      }
    });
  },
};

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
    const service = await context.serve({}, 'near', 'far');
    const inside = podToClusterIp(service);
    await underLoad(context, { id: 'tour', during: 'while the type changes', calls: [inside] }, async () => {
      for (const [index, type] of tour.entries()) {
        await context.put({ services: [objects.service({ type })] });
        const id = `stop ${index + 1}, ${type}`;
        const outside = (isThere: boolean): Expectation =>
          isThere ? objects.masqueraded('near', 'far') : { kind: 'pass' };
        await context.see(
          [`${id}/clusterIP`, inside, objects.direct('near', 'far')],
          [`${id}/nodePort`, outsideToNodePort(service), outside(type !== 'ClusterIP')],
          [`${id}/loadBalancerIP`, outsideToLoadBalancer(service), outside(type === 'LoadBalancer')],
        );
      }
    });
  },
};

/** Endpoints of one family change while the other family serves. */
export const dualStack: Sequence = {
  name: 'dual-stack',
  title: 'the two families of a Service change independently: one is refused while the other loses nothing',
  why: 'KEP-563 (dual-stack); kube-proxy fact 27: two families never influence each other',
  tags: ['dual-stack', 'load', 'node-port'],
  needs: ['load', 'sendFromOutside'],
  families: 'dual',
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    const own = { objects, inOtherFamily: false, name: objects.ipFamily };
    const other = { objects: objects.other, inOtherFamily: true, name: objects.other.ipFamily };
    const all = [own, other].flatMap((one) => one.objects.endpoints(service, 'near', 'far'));
    await context.begin({ services: [service], endpoints: all });
    for (const [changing, still] of [
      [own, other],
      [other, own],
    ] as const) {
      const kept = still.objects.endpoints(service, 'near', 'far');
      const callsIn = ({ inOtherFamily }: typeof own) =>
        [
          { ...podToClusterIp(service), inOtherFamily },
          { ...outsideToNodePort(service), inOtherFamily },
        ] as const;
      const [inside, outside] = callsIn(changing);
      const during = `while the endpoints of ${changing.name} change`;
      await underLoad(context, { id: `${still.name} meanwhile`, during, calls: callsIn(still) }, async () => {
        for (const pods of [['far2'], [], ['near', 'far']] as const) {
          await context.put({ endpoints: [...kept, ...changing.objects.endpoints(service, ...pods)] });
          const id = `${changing.name} with ${pods.length === 0 ? 'none' : pods.join(' and ')}`;
          const expected = (answered: Expectation): Expectation => (pods.length === 0 ? { kind: 'reject' } : answered);
          await context.see(
            [`${id}/clusterIP`, inside, expected(changing.objects.direct(...pods))],
            [`${id}/nodePort`, outside, expected(changing.objects.masqueraded(...pods))],
          );
        }
      });
    }
  },
};

const changes = 50;

/** Between two changes, in milliseconds: shorter than some proxies need, so they get several at once. */
const interval = 30;
const others = ['near2', 'far', 'far2'] as const;
const conditions = ['ready', 'serving-terminating', undefined] as const;

/** Endpoints are added, terminate and are removed without pause; one stays. */
export const endpointChurn: Sequence = {
  name: 'endpoint-churn',
  title: 'fifty changes of an endpoint set in a row lose no connection, and the last one counts',
  why: 'discovery.k8s.io/v1 EndpointSlice: a change of a Service takes effect whole; kube-proxy fact 42: changes coalesce',
  tags: ['load', 'terminating', 'node-port'],
  needs: ['load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    /** Each of the others is in one of three conditions, by a digit of the number to base 3. */
    const at = (change: number): readonly ScenarioEndpoint[] => [
      objects.endpoint(service, 'near'),
      ...others.flatMap((pod, index) => {
        const condition = conditions[Math.floor((change * 7) / 3 ** index) % 3];
        return condition === undefined ? [] : [objects.endpoint(service, pod, condition)];
      }),
    ];
    await context.begin({ services: [service], endpoints: at(0) });
    const [inside, outside] = [podToClusterIp(service), outsideToNodePort(service)];
    const load = { id: 'churn', during: 'while endpoints come and go', calls: [inside, outside] };
    await underLoad(context, load, async () => {
      for (let change = 1; change < changes; change++) {
        await context.write({ endpoints: at(change) });
        await context.sleep(interval);
      }
      await context.put({ endpoints: objects.endpoints(service, 'near', 'far2') });
    });
    await context.see(
      ['the last set/clusterIP', inside, objects.direct('near', 'far2')],
      ['the last set/nodePort', outside, objects.masqueraded('near', 'far2')],
    );
  },
};
