import type { ScenarioEndpoint } from '@switchyard/scenarios';
import { outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { underLoad } from './support/load.ts';
import type { Sequence } from './support/sequence.ts';

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
    const inside = podToClusterIp(service);
    const outside = outsideToNodePort(service);
    await underLoad(
      context,
      { id: 'churn', during: 'while endpoints come and go', calls: [inside, outside] },
      async () => {
        for (let change = 1; change < changes; change++) {
          await context.write({ endpoints: at(change) });
          await context.sleep(interval);
        }
        await context.put({ endpoints: objects.endpoints(service, 'near', 'far2') });
      },
    );
    await context.see(
      { id: 'the last set/clusterIP', call: inside, expect: objects.forward(['near', 'far2']) },
      { id: 'the last set/nodePort', call: outside, expect: objects.forward(['near', 'far2'], 'masqueraded') },
    );
  },
};
