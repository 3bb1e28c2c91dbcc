import type { Expectation, ScenarioEndpoint, ScenarioService } from '@switchyard/scenarios';
import { exchange, type Held, hold, release, underLoad } from './support/load.ts';
import { type Call, callName, type Condition } from './support/object-factory.ts';
import { outsideToLoadBalancer, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import type { Sequence, SequenceContext } from './support/sequence-context.ts';

const client = '172.18.0.100/32';
const stranger = '172.18.0.50/32';

/** The decision taken when a connection is made holds for its whole life. */
export const holdOpen: Sequence = {
  name: 'hold-open',
  title: 'established TCP connections outlive every change of their Service and a restart of the proxy, idle or not',
  why: 'kube-proxy-facts A1 row 22 and fact 68: flows to an endpoint that is gone survive; fact 53: only new connections are refused or dropped',
  tags: ['hold-open', 'restart', 'node-port', 'load-balancer', 'source-ranges'],
  needs: ['holdConnections', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = await context.serve({ type: 'LoadBalancer' }, 'near', 'far');
    const calls: readonly Call[] = [
      podToClusterIp(service),
      { service, by: 'clusterIP', from: 'node' },
      outsideToNodePort(service),
      outsideToLoadBalancer(service),
      { service, by: 'nodePort', from: 'pod' },
      { service, by: 'loadBalancerIP', from: 'pod' },
    ];
    const holdEach = (how: string): Promise<readonly Held[]> =>
      Promise.all(calls.map((call) => hold(context, call, `${how}, ${callName(call)}`)));
    const [active, idle] = [await holdEach('active'), await holdEach('idle')];
    const guarded = objects.service({ type: 'LoadBalancer', loadBalancerSourceRanges: [stranger] });
    const local = objects.service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    const restart = async (): Promise<void> => {
      await context.proxy.kill();
      await context.startProxy();
    };
    const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['the source ranges leave the client out', () => context.put({ services: [guarded] })],
      ['the external policy is Local', () => context.put({ services: [local] })],
      ['both endpoints are replaced', () => context.put({ endpoints: objects.endpoints(service, 'near2', 'far2') })],
      ['the Service is refused', () => context.put({ services: [service], endpoints: [] })],
      ['the proxy was killed and started', restart],
      ['there are endpoints again', () => context.put({ endpoints: objects.endpoints(service, 'near2') })],
    ];
    for (const [moment, change] of changes) {
      if (change === restart && !context.hasAbility('restartProxy', [moment])) continue;
      await change();
      await exchange(context, moment, active);
    }
    await exchange(context, 'after all that', idle);
    await release([...active, ...idle]);
  },
};

/** Source ranges change while packets flow. */
export const sourceRangeEdits: Sequence = {
  name: 'source-range-edits',
  title: 'edited source ranges count for the next connection to the load-balancer IP, and for nothing else',
  why: 'API: loadBalancerSourceRanges; kube-proxy facts 21 (NodePorts stay open), 53 and 54 (established connections go on)',
  tags: ['source-ranges', 'load', 'load-balancer', 'node-port'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  async run(context) {
    const { objects } = context;
    const service = await context.serve({ type: 'LoadBalancer', loadBalancerSourceRanges: [client] }, 'near', 'far');
    const call = outsideToLoadBalancer(service);
    const held = [await hold(context, call)];
    const all = objects.masqueraded('near', 'far');
    const edits: readonly (readonly [string, readonly string[], Expectation])[] = [
      ['another host besides', [client, stranger], all],
      ['no ranges', [], all],
      ['another host alone', [stranger], { kind: 'drop' }],
      ['the client alone', [client], all],
    ];
    const calls = [outsideToNodePort(service), podToClusterIp(service)];
    await underLoad(context, { id: 'unguarded', during: 'while source ranges are edited', calls }, async () => {
      for (const [name, loadBalancerSourceRanges, expect] of edits) {
        await context.put({ services: [objects.service({ type: 'LoadBalancer', loadBalancerSourceRanges })] });
        await context.see([name, call, expect]);
        await exchange(context, name, held);
      }
    });
    await release(held);
  },
};

/** Conditions of the pod on this node and of the pod on another node; undefined: no such pod. */
interface Moment {
  readonly near: Condition | undefined;
  readonly far: Condition | undefined;
  /** Endpoints for a pod's packets to the cluster IP: any usable one. Empty: they are refused. */
  readonly inside: readonly ('near' | 'far')[];
  /**
   * Packets from outside to the NodePort, which uses this node's endpoints only. Without one they are dropped while another node has a
   * serving endpoint, else refused.
   */
  readonly local: 'near' | 'drop' | 'reject';
}

const bothReady: Moment = { near: 'ready', far: 'ready', inside: ['near', 'far'], local: 'near' };

/** One at a time: first the pod here, then the one elsewhere. */
const oneByOne: readonly Moment[] = [
  bothReady,
  { near: 'serving-terminating', far: 'ready', inside: ['far'], local: 'near' },
  { near: 'terminating', far: 'ready', inside: ['far'], local: 'drop' },
  { near: undefined, far: 'serving-terminating', inside: ['far'], local: 'drop' },
  { near: undefined, far: 'terminating', inside: [], local: 'reject' },
  { near: undefined, far: undefined, inside: [], local: 'reject' },
];

/** Both at the same time. */
const together: readonly Moment[] = [
  bothReady,
  { near: 'serving-terminating', far: 'serving-terminating', inside: ['near', 'far'], local: 'near' },
  { near: 'terminating', far: 'terminating', inside: [], local: 'reject' },
];

const terminating: Omit<Sequence, 'name' | 'run'> = {
  title: 'new connections go to ready endpoints, else to those that still serve; old ones go on whatever happens',
  why: 'KEP-1669: without a ready endpoint the serving terminating ones are used, for the cluster and for the node on its own; kube-proxy facts 3, 5, 6, 7',
  tags: ['terminating', 'load', 'node-port', 'hold-open'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
};

/** Pods of a Service terminate, one after the other or all at once, and become ready again. */
export const terminatingTransitions: readonly Sequence[] = [
  { name: 'terminating-one-by-one', ...terminating, run: (context) => goThrough(context, oneByOne) },
  { name: 'terminating-together', ...terminating, run: (context) => goThrough(context, together) },
];

async function goThrough(context: SequenceContext, moments: readonly Moment[]): Promise<void> {
  const service = context.objects.service({ type: 'NodePort', externalTrafficPolicy: 'Local' });
  const [inside, outside] = [podToClusterIp(service), outsideToNodePort(service)];
  await context.begin({ services: [service], endpoints: endpointsAt(context, service, bothReady) });
  const held = [await hold(context, inside), await hold(context, outside)];
  const visit = async (name: string, some: readonly Moment[]): Promise<void> => {
    for (const moment of some) {
      const id = `${name}, near ${moment.near ?? 'gone'}, far ${moment.far ?? 'gone'}`;
      await context.put({ endpoints: endpointsAt(context, service, moment) });
      const { objects } = context;
      const refused = moment.inside.length === 0;
      await context.see(
        [`${id}/pod by clusterIP`, inside, refused ? { kind: 'reject' } : objects.direct(...moment.inside)],
        [
          `${id}/outside by nodePort`,
          outside,
          moment.local === 'near' ? objects.direct('near') : { kind: moment.local },
        ],
      );
      await exchange(context, id, held);
    }
  };
  const reached = moments.filter((moment) => moment.inside.length > 0);
  const load = { id: 'ending', during: 'while endpoints end', calls: [inside] };
  await underLoad(context, load, () => visit('ending', reached));
  await visit('ending', moments.slice(reached.length));
  await visit('coming back', moments.toReversed().slice(1));
  await release(held);
}

function endpointsAt({ objects }: SequenceContext, service: ScenarioService, at: Moment): readonly ScenarioEndpoint[] {
  return (['near', 'far'] as const).flatMap((pod) => {
    const condition = at[pod];
    return condition === undefined ? [] : [objects.endpoint(service, pod, condition)];
  });
}
