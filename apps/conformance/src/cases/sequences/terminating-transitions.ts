import type { Expectation, ScenarioEndpoint, ScenarioService } from '@switchyard/scenarios';
import { type ObjectFactory, type Condition, outsideToNodePort, podToClusterIp } from './support/object-factory.ts';
import { exchange, type Held, hold, release } from './support/held.ts';
import { underLoad } from './support/load.ts';
import type { SequenceContext } from './support/sequence-context.ts';
import type { Sequence } from './support/sequence.ts';

/** Conditions of the pod on this node and of the pod on another node; undefined: no such pod. */
interface Moment {
  readonly near: Condition | undefined;
  readonly far: Condition | undefined;
  /** Endpoints for a pod's packets to the cluster IP: any usable one. */
  readonly inside: readonly ('near' | 'far')[];
  /** Endpoints for packets from outside to the NodePort, which uses this node's endpoints only; empty: none. */
  readonly local: readonly 'near'[];
  /** Whether another node has a serving endpoint: packets without a local endpoint are then dropped, else refused. */
  readonly isElsewhere: boolean;
}

/** One at a time: first the pod here, then the one elsewhere. */
const oneByOne: readonly Moment[] = [
  { near: 'ready', far: 'ready', inside: ['near', 'far'], local: ['near'], isElsewhere: true },
  { near: 'serving-terminating', far: 'ready', inside: ['far'], local: ['near'], isElsewhere: true },
  { near: 'terminating', far: 'ready', inside: ['far'], local: [], isElsewhere: true },
  { near: undefined, far: 'serving-terminating', inside: ['far'], local: [], isElsewhere: true },
  { near: undefined, far: 'terminating', inside: [], local: [], isElsewhere: false },
  { near: undefined, far: undefined, inside: [], local: [], isElsewhere: false },
];

/** Both at the same time. */
const together: readonly Moment[] = [
  { near: 'ready', far: 'ready', inside: ['near', 'far'], local: ['near'], isElsewhere: true },
  {
    near: 'serving-terminating',
    far: 'serving-terminating',
    inside: ['near', 'far'],
    local: ['near'],
    isElsewhere: true,
  },
  { near: 'terminating', far: 'terminating', inside: [], local: [], isElsewhere: false },
];

const title = 'new connections go to ready endpoints, else to those that still serve; old ones go on whatever happens';
const why =
  'KEP-1669: without a ready endpoint the serving terminating ones are used, for the cluster and for the node on its own; kube-proxy facts 3, 5, 6, 7';

/** Pods terminate one after the other, and become ready again. */
export const terminatingOneByOne: Sequence = {
  name: 'terminating-one-by-one',
  title,
  why,
  tags: ['terminating', 'load', 'node-port', 'hold-open'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  run: (context) => run(context, oneByOne),
};

/** All pods of a Service terminate at once, and become ready again. */
export const terminatingTogether: Sequence = {
  name: 'terminating-together',
  title,
  why,
  tags: ['terminating', 'load', 'node-port', 'hold-open'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  run: (context) => run(context, together),
};

async function run(context: SequenceContext, moments: readonly Moment[]): Promise<void> {
  const { objects } = context;
  const service = objects.service({ type: 'NodePort', externalTrafficPolicy: 'Local' });
  const [first] = moments;
  if (first === undefined) return;
  await context.begin({ services: [service], endpoints: endpointsAt(objects, service, first) });
  const held = [await hold(context, podToClusterIp(service)), await hold(context, outsideToNodePort(service))];
  const reached = moments.filter(({ inside }) => inside.length > 0);
  await underLoad(context, { id: 'ending', during: 'while endpoints end', calls: [podToClusterIp(service)] }, () =>
    visit(context, { service, held, name: 'ending', moments: reached }),
  );
  await visit(context, { service, held, name: 'ending', moments: moments.slice(reached.length) });
  await visit(context, { service, held, name: 'coming back', moments: moments.toReversed().slice(1) });
  await release(held);
}

interface Visit {
  readonly service: ScenarioService;
  readonly held: readonly Held[];
  readonly name: string;
  readonly moments: readonly Moment[];
}

async function visit(context: SequenceContext, { service, held, name, moments }: Visit): Promise<void> {
  for (const moment of moments) {
    const id = `${name}, ${momentText(moment)}`;
    await context.put({ endpoints: endpointsAt(context.objects, service, moment) });
    await context.see(
      { id: `${id}/pod by clusterIP`, call: podToClusterIp(service), expect: insideOf(context.objects, moment) },
      { id: `${id}/outside by nodePort`, call: outsideToNodePort(service), expect: localOf(context.objects, moment) },
    );
    await exchange(context, id, held);
  }
}

function insideOf(objects: ObjectFactory, { inside }: Moment): Expectation {
  return inside.length > 0 ? objects.forward(inside) : { kind: 'reject' };
}

function localOf(objects: ObjectFactory, { local, isElsewhere }: Moment): Expectation {
  if (local.length > 0) return objects.forward(local);
  return { kind: isElsewhere ? 'drop' : 'reject' };
}

function endpointsAt(objects: ObjectFactory, service: ScenarioService, moment: Moment): readonly ScenarioEndpoint[] {
  return (['near', 'far'] as const).flatMap((pod) => {
    const condition = moment[pod];
    return condition === undefined ? [] : [objects.endpoint(service, pod, condition)];
  });
}

function momentText({ near, far }: Moment): string {
  return `near ${near ?? 'gone'}, far ${far ?? 'gone'}`;
}
