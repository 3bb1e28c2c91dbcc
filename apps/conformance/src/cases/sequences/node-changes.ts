import { plainAgent, type ScenarioService } from '@switchyard/scenarios';
import { underLoad } from './support/load.ts';
import { outsideToLoadBalancer, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import type { Call, Condition, PodName } from './support/object-factory.ts';
import type { Sequence, SequenceContext } from './support/sequence-context.ts';

/**
 * The Node gets another address. kube-proxy only logs that, so its NodePorts are checked after a restart. A proxy that follows at once is
 * also correct: nothing is checked before.
 */
export const nodePortAddressChange: Sequence = {
  name: 'node-port-address-change',
  title:
    'NodePorts limited to the primary address are at the new one after a restart, and the cluster IP loses nothing',
  why: 'KubeProxyConfiguration nodePortAddresses: primary; kube-proxy-facts A9: a changed Node IP is only logged, fact 28: addresses are matched at the sync',
  tags: ['node-port', 'restart', 'load'],
  needs: ['changeNodes', 'configureProxy', 'controlProxy', 'load', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = objects.service({ type: 'NodePort' });
    const first = { services: [service], endpoints: objects.endpoints(service, 'near') };
    await context.begin(first, { ...plainAgent, nodePortAddresses: 'primary' });
    const ofNode = outsideToNodePort(service);
    const second = { ...ofNode, by: 'secondNodePort' } as const;
    const during = 'while the Node gets another address and back';
    await underLoad(context, { id: 'inside', during, calls: [podToClusterIp(service)] }, async () => {
      for (const name of ['before', 'changed', 'changed back'] as const) {
        const isChanged = name === 'changed';
        if (name !== 'before') {
          await context.write({ nodeAddress: isChanged ? '172.18.0.200' : '172.18.0.11' });
          await context.proxy.stop();
          await context.startProxy();
        }
        await context.see(
          [`${name}/the address of the Node answers`, isChanged ? second : ofNode, objects.masqueraded('near')],
          [`${name}/the other address does not`, isChanged ? ofNode : second, { kind: 'pass' }],
        );
      }
    });
  },
};

type Pods = readonly (readonly [PodName, Condition])[];
const moments: readonly (readonly [string, Pods, 200 | 503, number])[] = [
  ['one elsewhere', [['far', 'ready']], 503, 0],
  ['one here', [['near', 'ready']], 200, 1],
  [
    'two here',
    [
      ['near', 'ready'],
      ['near2', 'ready'],
      ['far', 'ready'],
    ],
    200,
    2,
  ],
  [
    'one of two ends',
    [
      ['near', 'serving-terminating'],
      ['near2', 'ready'],
    ],
    200,
    1,
  ],
  [
    'both end',
    [
      ['near', 'serving-terminating'],
      ['near2', 'serving-terminating'],
    ],
    503,
    0,
  ],
];

/** Answers to load balancers while endpoints and the proxy start and end. */
export const healthNodePorts: Sequence = {
  name: 'health-node-ports',
  title: 'the healthCheckNodePort counts ready endpoints of this node through every transition, and after a restart',
  why: 'API: healthCheckNodePort; kube-proxy-facts A1 row 21 (terminating endpoints fail it), facts 34 and 36',
  tags: ['health-check', 'terminating', 'restart', 'load-balancer'],
  needs: ['sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const options = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', hasHealthCheck: true } as const;
    const service = await context.serve(options);
    for (const [moment, pods, status, local] of moments) {
      await context.put({ endpoints: pods.map(([pod, condition]) => objects.endpoint(service, pod, condition)) });
      await context.seeHealth(moment, service, status, local);
    }
    const call = outsideToLoadBalancer(service);
    await context.see(['both end, but serve', call, objects.direct('near', 'near2')]);
    await seeHealthOfRestart(context, service, call);
    await context.put({ services: [objects.service({ type: 'LoadBalancer' })] });
    await context.seeHealth('the external policy is Cluster', service, 'closed');
  },
};

/** Health while the proxy does not run, and after its start. */
async function seeHealthOfRestart(context: SequenceContext, service: ScenarioService, call: Call): Promise<void> {
  const { objects } = context;
  const [dead, started, packets] = ['the proxy is dead', 'started again, one here', 'started again, one here, packets'];
  if (!context.hasAbility('restartProxy', [dead, started, packets])) return;
  await context.proxy.kill();
  if (context.hasAbility('controlProxy', [dead])) await context.seeHealth(dead, service, 'closed');
  await context.write({ endpoints: objects.endpoints(service, 'near2') });
  await context.startProxy();
  await context.seeHealth(started, service, 200, 1);
  await context.see([packets, call, objects.direct('near2')]);
}
