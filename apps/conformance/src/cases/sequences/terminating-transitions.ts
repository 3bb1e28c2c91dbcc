import type { Expectation, ScenarioEndpoint, ScenarioService } from '@switchyard/scenarios';
import { type Cast, type Condition, outsideToNodePort, podToClusterIp } from './support/cast.ts';
import { exchange, type Held, hold, release } from './support/held.ts';
import { underLoad } from './support/load.ts';
import type { Play } from './support/play.ts';
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

/** Pods end one after the other, and come back. */
export const terminatingOneByOne: Sequence = {
  name: 'terminating-one-by-one',
  title,
  why,
  tags: ['terminating', 'load', 'node-port', 'hold-open'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  run: (play) => run(play, oneByOne),
};

/** All pods of a Service end at once, and come back. */
export const terminatingTogether: Sequence = {
  name: 'terminating-together',
  title,
  why,
  tags: ['terminating', 'load', 'node-port', 'hold-open'],
  needs: ['load', 'holdConnections', 'sendFromOutside'],
  run: (play) => run(play, together),
};

async function run(play: Play, moments: readonly Moment[]): Promise<void> {
  const { cast } = play;
  const service = cast.service({ type: 'NodePort', externalTrafficPolicy: 'Local' });
  const [first] = moments;
  if (first === undefined) return;
  await play.begin({ services: [service], endpoints: endpointsAt(cast, service, first) });
  const held = [await hold(play, podToClusterIp(service)), await hold(play, outsideToNodePort(service))];
  const reached = moments.filter(({ inside }) => inside.length > 0);
  await underLoad(play, { id: 'ending', during: 'while endpoints end', calls: [podToClusterIp(service)] }, () =>
    visit(play, { service, held, name: 'ending', moments: reached }),
  );
  await visit(play, { service, held, name: 'ending', moments: moments.slice(reached.length) });
  await visit(play, { service, held, name: 'coming back', moments: moments.toReversed().slice(1) });
  await release(held);
}

interface Visit {
  readonly service: ScenarioService;
  readonly held: readonly Held[];
  readonly name: string;
  readonly moments: readonly Moment[];
}

async function visit(play: Play, { service, held, name, moments }: Visit): Promise<void> {
  for (const moment of moments) {
    const id = `${name}, ${momentText(moment)}`;
    await play.put({ endpoints: endpointsAt(play.cast, service, moment) });
    await play.see(
      { id: `${id}/pod by clusterIP`, call: podToClusterIp(service), expect: insideOf(play.cast, moment) },
      { id: `${id}/outside by nodePort`, call: outsideToNodePort(service), expect: localOf(play.cast, moment) },
    );
    await exchange(play, id, held);
  }
}

function insideOf(cast: Cast, { inside }: Moment): Expectation {
  return inside.length > 0 ? cast.forward(inside) : { kind: 'reject' };
}

function localOf(cast: Cast, { local, isElsewhere }: Moment): Expectation {
  if (local.length > 0) return cast.forward(local);
  return { kind: isElsewhere ? 'drop' : 'reject' };
}

function endpointsAt(cast: Cast, service: ScenarioService, moment: Moment): readonly ScenarioEndpoint[] {
  return (['near', 'far'] as const).flatMap((pod) => {
    const condition = moment[pod];
    return condition === undefined ? [] : [cast.endpoint(service, pod, condition)];
  });
}

function momentText({ near, far }: Moment): string {
  return `near ${near ?? 'gone'}, far ${far ?? 'gone'}`;
}
