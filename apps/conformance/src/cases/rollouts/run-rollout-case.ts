import { type IpFamily, DataplaneError, millis } from '@switchyard/core';
import { observeSlices, rollOut, silentProgress, timelineSvg } from '@switchyard/rollout';
import type { RunRecord, SettledApp } from '@switchyard/rollout';
import { plainAgent, type ScenarioAgent } from '@switchyard/scenarios';
import { holdConnections, holdVerdict, judge, timelineOf } from './rollout-verdict.ts';
import type { HeldConnection, HeldConnections, PathVerdict, ReleasedAt } from './rollout-verdict.ts';
import { prepareRollout } from './prepare-rollout.ts';
import { type PodRelease, releasePods } from './release-pods.ts';
import { familiesOfCell, type Ability, type CatalogueOptions, type SequenceCase } from '../../model/case.ts';
import type { PreparedRollout, RolloutCase, RolloutKind } from '../../model/rollout.ts';
import type { TestEnvironment, CaseRecorder } from '../../model/test-environment.ts';

/** Rolling updates under an open loop of requests, of each family that the cell has. */
export function rolloutCases({ cell, dataplane, hasAllFamilies }: CatalogueOptions): readonly SequenceCase[] {
  return familiesOfCell(hasAllFamilies === true ? 'dual' : cell).flatMap((family) =>
    rolloutKinds.map((kind) => rolloutCase(kind, family, dataplane)),
  );
}

function rolloutCase(kind: RolloutKind, family: IpFamily, dataplane: CatalogueOptions['dataplane']): SequenceCase {
  const { title, why, policy } = kind;
  const needs: readonly Ability[] = [
    'sendFromOutside',
    'holdConnections',
    'load',
    'workloads',
    ...(policy === 'Local' ? (['loadBalancer'] as const) : []),
  ];
  return {
    kind: 'sequence',
    id: rolloutId(kind, family),
    title,
    why,
    tags: ['rollout', kind.workload, 'terminating', 'slow'],
    families: family,
    needs,
    notFor: undefined,
    run: (environment, record, signal) => runRolloutCase({ kind, family, dataplane }, { environment, record }, signal),
  };
}

/**
 * The kinds that are rolled. Each has a moment at which only the old pod can answer and it is already terminating, but for the
 * DaemonSet that surges, which must not need it.
 */
export const rolloutKinds: readonly RolloutKind[] = [
  {
    workload: 'deployment',
    policy: 'Local',
    title:
      'a Deployment moves its only pod to another node, behind a load balancer that follows health checks: no request is lost',
    why: 'KEP-1669: with externalTrafficPolicy Local a node without ready endpoints forwards to those that serve while they terminate, until the load balancer has left it',
    strategy: { maxSurge: 1, maxUnavailable: 0 },
  },
  {
    workload: 'deployment',
    policy: 'Cluster',
    title: 'a Deployment without surge replaces its only pod: no request is lost while only the terminating one serves',
    why: 'KEP-1669: where no endpoint of the cluster is ready, those that serve while they terminate are used',
    strategy: { maxSurge: 0, maxUnavailable: 1 },
  },
  {
    workload: 'daemonset',
    policy: 'Local',
    title:
      'a DaemonSet without surge replaces its pods node by node, behind a load balancer that follows health checks: no request is lost',
    why: 'KEP-1669: with externalTrafficPolicy Local a node without ready endpoints forwards to those that serve while they terminate, until the load balancer has left it',
    strategy: { maxSurge: 0, maxUnavailable: 1 },
  },
  {
    workload: 'daemonset',
    policy: 'Cluster',
    title: 'a DaemonSet with surge replaces its pods, each when its successor is ready: no request is lost',
    why: 'KEP-1591: maxSurge of a DaemonSet starts the new pod of a node before the old one goes, so a ready endpoint is always there',
    strategy: { maxSurge: 1, maxUnavailable: 0 },
  },
];

/** `rollout/deployment/Local/ipv4`. */
export function rolloutId({ workload, policy }: RolloutKind, family: IpFamily): string {
  return `rollout/${workload}/${policy}/${family.toLowerCase()}`;
}

/** Settings of most clusters: only defaults, which the oldest proxy knows too. */
const agent: ScenarioAgent = { ...plainAgent, nodePortAddresses: 'default' };

/** A proxy that has not answered by then is taken to never answer. */
const settleTimeout = millis(60_000);
const heldPerPath = 3;

/** Rolls the app of a case once under load, and records what was lost by each path, why, and how open connections fared. */
export async function runRolloutCase(
  what: RolloutCase,
  { environment, record }: { readonly environment: TestEnvironment; readonly record: CaseRecorder },
  signal: AbortSignal,
): Promise<void> {
  const tell = (text: string): void => record.progress(text);
  const prepareInLab: NonNullable<TestEnvironment['prepareRollout']> = (...args) =>
    prepareRollout(environment, ...args);
  await environment.reset(agent, signal);
  tell('starting the app and what leads to it');
  const prepare = environment.prepareRollout ?? prepareInLab;
  await using setup = await prepare(what, tell, signal);
  const seen = await rollOnce(setup, { record, tell }, signal);
  if (seen === undefined) return;
  const beside = seen.runs.flatMap(({ requests }) => requests);
  const surroundings = { explainAt: setup.explainAt, releasedAt: seen.releasedAt, beside };
  for (const run of seen.runs) recordPath(judge(run, surroundings), setup, record);
  recordHeld(seen, setup, record);
}

interface Seen {
  readonly runs: readonly RunRecord[];
  readonly held: readonly HeldConnection[];
  readonly releasedAt: ReleasedAt;
}

/** Undefined: the rollout did not finish; a check records that. */
async function rollOnce(
  prepared: PreparedRollout,
  { record, tell }: { readonly record: CaseRecorder; readonly tell: (text: string) => void },
  signal: AbortSignal,
): Promise<Seen | undefined> {
  const { setup, app, targets, holdTargets, pace } = prepared;
  await using stack = new AsyncDisposableStack();
  let held: HeldConnections | undefined;
  let release: PodRelease | undefined;
  const onSettled = async (settled: SettledApp): Promise<void> => {
    held = stack.use(await holdConnections(holdTargets, { count: heldPerPath, ...pace }, signal));
    const slices = stack.use(await observeSlices(setup.experiment.api, app, signal));
    release = stack.use(releasePods(prepared, settled.pods, slices));
  };
  const check = { id: 'the rollout', what: `rolling update of ${app.workload} ${app.name} under load`, because: [] };
  try {
    const work = { app, targets, settleTimeout, onSettled };
    const runs = await rollOut(setup, work, { ...silentProgress, step: tell }, signal);
    record.check({ ...check, expected: 'done', observed: 'done' });
    return { runs, held: (await held?.finish()) ?? [], releasedAt: release?.releasedAt ?? new Map() };
  } catch (error) {
    signal.throwIfAborted();
    // An expected answer never came, or the load balancer never moved. Pods have started and ended, so the proxy is at fault.
    if (!(error instanceof DataplaneError && error.code === 'rollout.timeout')) throw error;
    record.check({ ...check, expected: 'done', observed: 'stuck', because: [error.message] });
    return undefined;
  }
}

function recordPath(verdict: PathVerdict, { setup }: PreparedRollout, record: CaseRecorder): void {
  const { path, startedAt } = verdict.run;
  const { name } = path;
  const about = {
    id: `${name}: requests`,
    what: `${verdict.summary.requests} requests, ${setup.settings.rate}/s in an open loop, by ${name}`,
  };
  if (verdict.doubt !== undefined) record.inconclusive({ ...about, because: verdict.doubt });
  else {
    const { lost: observed, because, beside } = verdict;
    record.check({ ...about, expected: '0 lost', observed, because }, undefined, startedAt);
    const prediction = {
      id: `${name}: prediction`,
      what: 'losses against what the loss model says of the observed event times',
      expected: 'inside the prediction',
      observed: beside ?? 'inside the prediction',
      because: [],
    };
    record.check(prediction, undefined, startedAt);
  }
  record.rollout(timelineOf(verdict, timelineSvg(verdict.run, verdict.summary)));
}

/** Connections live as long as their pods serve: a rollout takes new ones away from them, and nothing else. */
function recordHeld({ runs, held, releasedAt }: Seen, { pace }: PreparedRollout, record: CaseRecorder): void {
  const since = runs[0]?.startedAt;
  for (const [path, connections] of Map.groupBy(held, (one) => one.path)) {
    const verdicts = connections.map((one) => holdVerdict(one, releasedAt.get(one.pod ?? '')));
    const check = {
      id: `${path}: open connections`,
      what: `${connections.length} connections opened before the rollout, a line to and fro every ${pace.lineInterval / 1000} s, by ${path}`,
      expected: 'held until the pod ended',
      observed: verdicts.every((verdict) => verdict === 'held')
        ? 'held until the pod ended'
        : [...new Set(verdicts)].sort().join('; '),
      because: [],
    };
    record.check(check, undefined, since);
  }
}
