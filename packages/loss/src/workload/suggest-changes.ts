import { seconds } from '@switchyard/core';
import type { Container, Deployment, Service } from '@switchyard/core/kubernetes';
import { takenInAfter, takenOutAfter } from '../check-timing.ts';
import { requiredServing } from '../required-serving.ts';
import { type ForecastConditions, type ForecastObjects, isLossless, pathSettings, proxyTimingOf } from './forecast.ts';
import { type HookOptions, type HookPatch, hookPatch } from './pre-stop-patch.ts';
import { leastPreStop, preStopOf } from './pre-stop.ts';
import { applyPatch, type JsonObject } from './strategic-patch.ts';
import { isOutage, wholeSeconds } from './warnings.ts';
import { servingContainer, type Workload } from './workload.ts';

/** One changed field. */
export interface Change {
  /** `deployment/web` or `service/web`. */
  readonly object: string;
  readonly field: string;
  readonly from: string;
  readonly to: string;
}

/** A strategic merge patch of one object. */
export interface ObjectPatch {
  readonly kind: 'deployment' | 'service';
  readonly name: string;
  readonly patch: JsonObject;
}

/** Changes with which a rollout loses nothing, as predicted for the patched objects. */
export interface Suggestion {
  readonly changes: readonly Change[];
  /** The Deployment's first. */
  readonly patches: readonly ObjectPatch[];
}

/** Conditions of predictions and of hooks. */
export interface SuggestConditions extends ForecastConditions, HookOptions {}

/** Settings to try; undefined: as they are. */
interface Plan {
  readonly strategy: 'surge' | 'inPlace' | undefined;
  /** Seconds that the preStop hook lasts at least. */
  readonly serve: number | undefined;
  readonly minReady: number | undefined;
  /** Sets policy `Cluster` where nothing leads clients to a node with a pod, or also where the load balancer does. */
  readonly cluster: 'unguided' | 'all';
}

/** Time that the application has after SIGTERM, unless it had less. */
const shutdownTime = 10;

/**
 * The smallest changes, in the order preStop hook, strategy, minReadySeconds, traffic policy, with which the next rollout loses nothing even
 * in the worst case. Undefined: none of them is enough.
 */
export function suggestChanges(objects: ForecastObjects, conditions: SuggestConditions): Suggestion | undefined {
  const build = (plan: Plan): Built | undefined => builtOf(plan, objects, conditions);
  const isEnough = (plan: Plan): boolean => {
    const built = build(plan);
    return built !== undefined && isLossless(built.objects, conditions);
  };
  for (const plan of plans(objects, conditions, build)) {
    if (!isEnough(plan)) continue;
    const { serve } = plan;
    const least =
      serve === undefined ? plan : { ...plan, serve: leastOf(serve, (one) => isEnough({ ...plan, serve: one })) };
    return build(least)?.suggestion;
  }
  return undefined;
}

/** Plans to try, those with smaller changes first. */
function* plans(
  objects: ForecastObjects,
  conditions: SuggestConditions,
  build: (plan: Plan) => Built | undefined,
): Generator<Plan, void> {
  for (const cluster of ['unguided', 'all'] as const) {
    for (const minReady of minReadies(objects, conditions)) {
      for (const strategy of strategies(objects, conditions)) {
        const plan: Plan = { cluster, minReady, strategy, serve: undefined };
        yield plan;
        const { needed, untilReplaced } = servingNeeds(build(plan)?.objects ?? objects, conditions);
        if (needed > 0) yield { ...plan, serve: needed };
        if (untilReplaced > needed) yield { ...plan, serve: untilReplaced };
      }
    }
  }
}

/** Strategies worth a try: never one that lets all pods go before a new one is ready. */
function strategies(objects: ForecastObjects, conditions: SuggestConditions): readonly Plan['strategy'][] {
  const workload = anyWorkload(objects, conditions);
  return workload === undefined || isOutage(workload) ? ['surge', 'inPlace'] : [undefined, 'surge', 'inPlace'];
}

/** Seconds in which nodes learn of a new pod; in which a load balancer takes its node in, at first less what it needs to leave the old one. */
function minReadies(objects: ForecastObjects, conditions: SuggestConditions): readonly Plan['minReady'][] {
  const { noticesReady } = proxyTimingOf(conditions);
  const settings = pathSettings(objects, conditions);
  const times = settings.flatMap(({ path: { check }, workload }) => {
    const balanced =
      check === undefined
        ? []
        : [takenInAfter(check).longest - takenOutAfter(check).shortest, takenInAfter(check).longest];
    const wanted = [0, ...balanced].map((time) => noticesReady.longest + time);
    return wanted.map((time) => Math.ceil(time / seconds(1))).filter((time) => time > workload.minReady / seconds(1));
  });
  return [undefined, ...new Set(times.toSorted((a, b) => a - b))];
}

/** Seconds of preStop that a rollout needs: where a new pod is ready first, and where an old one must outlast a new one's start. */
function servingNeeds(
  objects: ForecastObjects,
  conditions: SuggestConditions,
): { readonly needed: number; readonly untilReplaced: number } {
  const needs = pathSettings(objects, conditions).map(({ late: [late] }) => {
    const { startup, drain, gracePeriod } = late.app;
    const served = (requiredServing(late) ?? seconds(0)) - Math.min(drain, gracePeriod);
    return { served, replaced: served + startup + late.shape.minReady };
  });
  const most = (times: readonly number[]): number => Math.max(0, ...times.map((time) => Math.ceil(time / seconds(1))));
  return { needed: most(needs.map((one) => one.served)), untilReplaced: most(needs.map((one) => one.replaced)) };
}

/** The least whole number from 1 to `enough` that is enough, if more is never worse. */
function leastOf(enough: number, isEnough: (value: number) => boolean): number {
  let [low, high] = [0, enough];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isEnough(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** A plan carried out. */
interface Built {
  readonly objects: ForecastObjects;
  readonly suggestion: Suggestion;
}

function builtOf(plan: Plan, objects: ForecastObjects, conditions: SuggestConditions): Built | undefined {
  const parts = deploymentParts(plan, objects, conditions);
  if (parts === undefined) return undefined;
  const { name = '' } = objects.deployment.metadata;
  const patch = parts.reduce((all, one) => applyPatch(all, one.patch), {} as JsonObject);
  const services = objects.services.map((service) => ({ service, change: policyPart(plan, service) }));
  const patches: readonly ObjectPatch[] = [
    ...(parts.length === 0 ? [] : [{ kind: 'deployment', name, patch } as const]),
    ...services.flatMap(({ service, change }) =>
      change === undefined
        ? []
        : [{ kind: 'service', name: service.metadata.name ?? '', patch: change.patch } as const],
    ),
  ];
  return {
    objects: {
      ...objects,
      deployment: applyPatch(objects.deployment, patch),
      services: services.map(({ service, change }) =>
        change === undefined ? service : applyPatch(service, change.patch),
      ),
    },
    suggestion: {
      patches,
      changes: [
        ...parts.map(({ field, from, to }) => ({ object: `deployment/${name}`, field, from, to })),
        ...services.flatMap(({ service, change }) =>
          (change?.fields ?? []).map((field) => ({
            object: `service/${service.metadata.name}`,
            field,
            from: 'Local',
            to: 'Cluster',
          })),
        ),
      ],
    },
  };
}

interface Part extends Omit<Change, 'object'> {
  readonly patch: JsonObject;
}

/** Undefined: a hook cannot be patched. */
function deploymentParts(
  { strategy, serve, minReady }: Plan,
  objects: ForecastObjects,
  conditions: SuggestConditions,
): readonly Part[] | undefined {
  const parts: Part[] = [];
  const workload = anyWorkload(objects, conditions);
  if (serve !== undefined) {
    const hooks = hookParts(serve, objects, conditions);
    if (hooks === undefined) return undefined;
    parts.push(...hooks);
  }
  if (strategy !== undefined && workload !== undefined)
    parts.push(strategyPart(strategy, objects.deployment, workload));
  if (minReady !== undefined) {
    const from = String(objects.deployment.spec?.minReadySeconds ?? 0);
    const patch = { spec: { minReadySeconds: minReady } };
    parts.push({ field: 'minReadySeconds', from, to: String(minReady), patch });
  }
  return parts;
}

function anyWorkload(objects: ForecastObjects, conditions: SuggestConditions): Workload | undefined {
  return pathSettings(objects, conditions)[0]?.workload;
}

function hookParts(
  serve: number,
  { deployment, services }: ForecastObjects,
  conditions: SuggestConditions,
): readonly Part[] | undefined {
  const template = deployment.spec?.template.spec;
  const containers = new Set(services.flatMap((service) => servingContainer(template, service) ?? []));
  const parts: Part[] = [];
  let grace = template?.terminationGracePeriodSeconds ?? 30;
  const before = grace;
  for (const container of containers) {
    const hook = hookPatch(container, serve, conditions);
    if (hook === undefined) return undefined;
    grace = Math.max(grace, graceFor(container, hook, { before, conditions }));
    const patch = { spec: { template: { spec: { containers: [hook.patch] } } } };
    parts.push({
      field: `preStop of the container ${container.name}`,
      from: hookText(container),
      to: hook.text,
      patch,
    });
  }
  if (grace === before) return parts;
  const patch = { spec: { template: { spec: { terminationGracePeriodSeconds: grace } } } };
  return [...parts, { field: 'terminationGracePeriodSeconds', from: String(before), to: String(grace), patch }];
}

function graceFor(
  container: Container,
  { longest }: HookPatch,
  { before, conditions }: { readonly before: number; readonly conditions: SuggestConditions },
): number {
  const hook = preStopOf(container);
  const usual = before - wholeSeconds(leastPreStop(hook));
  // An unknown hook takes what it took.
  const after = hook.kind === 'unknown' ? usual : Math.max(0, Math.min(shutdownTime, usual));
  return longest + Math.max(after, wholeSeconds(conditions.drain ?? seconds(0)));
}

function hookText(container: Container): string {
  const hook = preStopOf(container);
  if (hook.kind === 'none') return 'none';
  return hook.kind === 'sleep' ? `sleep ${hook.duration / seconds(1)} s` : hook.what;
}

function strategyPart(strategy: 'surge' | 'inPlace', { spec }: Deployment, workload: Workload): Part {
  const current = workload.strategy;
  const surge = current.kind === 'RollingUpdate' && current.maxSurge > 0 ? undefined : 1;
  const rollingUpdate =
    strategy === 'inPlace'
      ? { maxSurge: 0, maxUnavailable: 1 }
      : { ...(surge === undefined ? {} : { maxSurge: surge }), maxUnavailable: 0 };
  const { maxSurge = '25%', maxUnavailable = '25%' } = spec?.strategy?.rollingUpdate ?? {};
  return {
    field: 'strategy',
    from: current.kind === 'Recreate' ? 'Recreate' : `maxSurge ${maxSurge}, maxUnavailable ${maxUnavailable}`,
    to: Object.entries(rollingUpdate)
      .map(([field, value]) => `${field} ${value}`)
      .join(', '),
    patch: { spec: { strategy: { type: 'RollingUpdate', rollingUpdate } } },
  };
}

interface PolicyPart {
  readonly fields: readonly string[];
  readonly patch: JsonObject;
}

function policyPart({ cluster }: Plan, { spec }: Service): PolicyPart | undefined {
  const { type = 'ClusterIP', internalTrafficPolicy, externalTrafficPolicy } = spec ?? {};
  if (spec?.clusterIP === 'None' || type === 'ExternalName') return undefined;
  const isBalanced = type === 'LoadBalancer' && cluster === 'unguided';
  const fields = [
    ...(internalTrafficPolicy === 'Local' ? ['internalTrafficPolicy'] : []),
    ...(externalTrafficPolicy === 'Local' && type !== 'ClusterIP' && !isBalanced ? ['externalTrafficPolicy'] : []),
  ];
  if (fields.length === 0) return undefined;
  return { fields, patch: { spec: Object.fromEntries(fields.map((field) => [field, 'Cluster'])) } };
}
