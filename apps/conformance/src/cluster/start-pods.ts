import { ApiServerError, HostError, millis, seconds } from '@switchyard/core';
import type { Clock, IpAddress, IpFamily } from '@switchyard/core';
import { apiResources, type EventObject, type Pod } from '@switchyard/core/kubernetes';
import { portTakenExitCode, trafficPodArguments, type TrafficPodOptions } from '@switchyard/lab';
import { firstOfEachFamily, runLabel } from './preflight.ts';
import { type CalledPod, type Caller, tryCallPod } from './traffic-caller.ts';

/** A running pod with its control API. */
export interface TrafficPod extends CalledPod {
  readonly node: string;
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
}

export interface PodStarter {
  readonly caller: Caller;
  readonly settings: PodSettings;
  readonly clock: Clock;
  /** A port for a pod on the host's network; another one for each call. */
  readonly hostPort: () => number;
  readonly onProgress: (text: string) => void;
}

/** Longest start of a pod, which includes pulling the image. */
const longestStart = seconds(300);
const lookPause = millis(250);
const longestAccount = seconds(20);
/** Another process that has the pod's port may never answer. */
const longestHello = millis(2_000);
/** Shorter waits are not reported, in milliseconds. */
const quietTime = 4_000;
/** Number of ports of a node to try before giving up. */
const portAttempts = 5;

/** Control port of pods outside the host's network; no scenario uses it. */
export const podPort = 21_080;

/** Starts pods side by side and waits until all of them answer. Rejects with `HostError` that says why one does not. */
export function startPods(
  starter: PodStarter,
  plans: readonly Omit<PodPlan, 'port'>[],
  signal: AbortSignal,
): Promise<readonly TrafficPod[]> {
  return Promise.all(plans.map((plan) => startPod(starter, plan, signal)));
}

async function startPod(starter: PodStarter, plan: Omit<PodPlan, 'port'>, signal: AbortSignal): Promise<TrafficPod> {
  const { caller, settings, hostPort, onProgress } = starter;
  const ref = { namespace: caller.namespace, name: plan.name };
  for (let left = portAttempts; ; left--) {
    const port = plan.isOnHostNetwork ? hostPort() : podPort;
    await createPod(starter, podManifest({ ...plan, port }, settings), signal);
    const started = await untilStarted(starter, { ...plan, port }, signal);
    if (started !== 'portTaken') return started;
    if (left <= 1) throw new HostError('cluster.port', `no free port on node ${plan.node}: ${portAttempts} were tried`);
    onProgress(`port ${port} of node ${plan.node} is taken; trying another one`);
    await caller.api.delete(apiResources.pods, ref, {}, signal);
    while ((await caller.api.find(apiResources.pods, ref, signal)) !== undefined)
      await starter.clock.sleep(lookPause, signal);
  }
}

/** Creates a pod. The API server admits none to a new namespace until a controller has made its service account. */
async function createPod({ caller, clock }: PodStarter, pod: Pod, signal: AbortSignal): Promise<void> {
  const until = clock.monotonic() + longestAccount;
  for (;;) {
    try {
      await caller.api.create(apiResources.pods, pod, signal);
      return;
    } catch (error) {
      const isEarly =
        error instanceof ApiServerError && error.status === 403 && /service ?account/i.test(error.message);
      if (!isEarly || clock.monotonic() > until) throw error;
    }
    await clock.sleep(lookPause, signal);
  }
}

async function untilStarted(
  { caller, clock, onProgress }: PodStarter,
  plan: PodPlan,
  signal: AbortSignal,
): Promise<TrafficPod | 'portTaken'> {
  const { api, namespace } = caller;
  const start = clock.monotonic();
  let told = '';
  for (let why = ''; ; await clock.sleep(lookPause, signal)) {
    const waited = clock.monotonic() - start;
    const pod = await api.get(apiResources.pods, { namespace, name: plan.name }, signal);
    let standing = podStanding(pod);
    const isTold = waited > quietTime;
    if (standing.kind === 'pending' && isTold) standing = podStanding(pod, await eventsOf(caller, plan.name, signal));
    if (standing.kind === 'ended') {
      if (standing.exitCode === portTakenExitCode && plan.isOnHostNetwork) return 'portTaken';
      throw new HostError('cluster.pod', `pod ${plan.name} on node ${plan.node} has ended: ${standing.why}`);
    }
    if (standing.kind === 'running') {
      const hello = await tryCallPod(caller, plan, { name: 'hello', argument: {}, timeout: longestHello }, signal);
      if (hello.status === 'done' && hello.result.pod === plan.name)
        return { ...plan, addresses: firstOfEachFamily((pod.status?.podIPs ?? []).map(({ ip }) => ip)) };
      why = `it runs, but its port ${plan.port} ${hello.status === 'failed' ? hello.why : 'belongs to another program'}`;
    } else why = standing.why;
    if (waited > longestStart || (standing.kind === 'pending' && standing.isHopeless)) {
      throw new HostError(
        'cluster.pod',
        `pod ${plan.name} does not start on node ${plan.node}: ${why}; is the image there, or can it be pulled? (--image)`,
      );
    }
    if (isTold && why !== told) onProgress(`waiting for pod ${plan.name} on ${plan.node}: ${why}`);
    if (isTold) told = why;
  }
}

/** The newest last. */
async function eventsOf(
  { api, namespace }: Caller,
  name: string,
  signal: AbortSignal,
): Promise<readonly EventObject[]> {
  const select = { namespace, fieldSelector: `involvedObject.name=${name}` };
  // Events only explain the wait, which continues without the right to read them.
  const events = await api.list(apiResources.events, select, signal).catch(() => ({ items: [] }));
  const time = ({ lastTimestamp, metadata }: EventObject): string => lastTimestamp ?? metadata.creationTimestamp ?? '';
  return events.items.toSorted((a, b) => time(a).localeCompare(time(b)));
}

export interface PodPlan {
  readonly name: string;
  /** Name of the Node, which pods name themselves instead of the scheduler. */
  readonly node: string;
  readonly isOnHostNetwork: boolean;
  /** Port of its control API. */
  readonly port: number;
  /** Its servers from the start on. Default: none. */
  readonly app?: Pick<TrafficPodOptions, 'http' | 'tcp' | 'delayShutdown'>;
}

export interface PodSettings {
  readonly run: string;
  readonly namespace: string;
  readonly image: string;
  /** Command instead of the image's own program; undefined: none. */
  readonly command: readonly string[] | undefined;
  /** SHA-256 of the token, hexadecimal. The token itself is not stored in the cluster. */
  readonly tokenDigest: string;
}

/** Any user but root; the program needs no right and writes no file. */
const userId = 65_532;

/**
 * A pod that sends and answers packets. It has no capability and no service account, and uses the host's network only for the node's
 * addresses. It is not restarted, so that its end can be reported.
 */
export function podManifest({ name, node, isOnHostNetwork, port, app }: PodPlan, settings: PodSettings): Pod {
  const { run, namespace, image, command, tokenDigest } = settings;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { [runLabel]: run, 'app.kubernetes.io/name': 'switchyard-conformance' } },
    spec: {
      nodeName: node,
      hostNetwork: isOnHostNetwork,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: userId,
        runAsGroup: userId,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'traffic',
          image,
          imagePullPolicy: 'IfNotPresent',
          ...(command === undefined ? {} : { command: [...command] }),
          args: [...trafficPodArguments({ pod: name, node, port, tokenDigest, ...app })],
          resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          terminationMessagePolicy: 'FallbackToLogsOnError',
        },
      ],
    },
  };
}

/** State of a pod that should start. */
export type PodStanding =
  | { readonly kind: 'running' }
  /** `isHopeless`: waiting any longer will not help. */
  | { readonly kind: 'pending'; readonly why: string; readonly isHopeless: boolean }
  | { readonly kind: 'ended'; readonly exitCode: number | undefined; readonly why: string };

/** Reasons of a waiting container that only a change of the pod, or of the image's name, can end. */
const hopeless = new Set([
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
]);

/** Reads the state of a pod from its status; events add details to `why`. */
export function podStanding(pod: Pod, events: readonly EventObject[] = []): PodStanding {
  const { status } = pod;
  const container = status?.containerStatuses?.[0]?.state;
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') {
    const { exitCode, reason, message } = container?.terminated ?? {};
    const said = [status.reason, status.message, reason, message?.trim()].filter(isSaid);
    return { kind: 'ended', exitCode, why: said.join(': ') || 'it says no reason' };
  }
  if (status?.phase === 'Running' && (status.podIPs ?? []).length > 0) return { kind: 'running' };
  const waiting = container?.waiting;
  const condition = (status?.conditions ?? []).find(
    ({ status: value, message }) =>
      value === 'False' && isSaid(message) && !message.startsWith('containers with unready'),
  );
  const last = events.at(-1);
  const isWarned = last?.type === 'Warning' || waiting === undefined || waiting.reason === 'ContainerCreating';
  const said = [
    waiting === undefined ? undefined : [waiting.reason, waiting.message].filter(isSaid).join(': '),
    waiting === undefined ? condition?.message : undefined,
    isWarned ? last?.message : undefined,
  ].filter(isSaid);
  const why = [...new Set(said)].join('; ') || 'its node has not said anything yet';
  return { kind: 'pending', why, isHopeless: hopeless.has(waiting?.reason ?? '') };
}

function isSaid(text: string | undefined | null): text is string {
  return text !== undefined && text !== null && text !== '';
}
