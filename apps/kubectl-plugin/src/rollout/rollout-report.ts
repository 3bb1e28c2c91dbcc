import type { Millis } from '@switchyard/core';
import type { DaemonSet } from '@switchyard/core/kubernetes';
import type { ExplainedCause, ProxyTiming } from '@switchyard/loss';
import {
  forecast,
  type ForecastConditions,
  lostRequests,
  type PathForecast,
  proxyTimingOf,
  type RequestInterval,
  suggestChanges,
  type Suggestion,
} from '@switchyard/loss/workload';
import { type DetectedCheck, detectCheck, namedCheck } from './detect-load-balancer.ts';
import { type DetectedProxy, detectProxy, namedProxy, oldestKubelet } from './detect-proxy.ts';
import type { MeasuredDelay } from './proxy-delay.ts';
import type { RolloutObjects } from './read-rollout.ts';
import { notesOf, reasonsOf } from './reasons.ts';

/** Settings that the user may name; undefined ones are detected. */
export interface CheckOptions {
  /** Requests a second of each kind of clients. */
  readonly rate: number;
  readonly proxy: string | undefined;
  /** Longest time until a node's proxy has applied a change; undefined: as kube-proxy's metrics say, else that of a small cluster. */
  readonly proxyDelay: Millis | undefined;
  readonly loadBalancer: string | undefined;
  /** Time that the application accepts connections after SIGTERM; undefined: not known. */
  readonly drain: Millis | undefined;
}

/** Lost requests of one path of clients. */
export interface PathReport extends Pick<PathForecast, 'clients' | 'service' | 'by' | 'policy' | 'noneUp'> {
  /** Health checks of the load balancer; undefined if none follow pods. */
  readonly loadBalancer: string | undefined;
  readonly requests: RequestInterval;
  /** The same in milliseconds of full traffic. */
  readonly lostTime: Pick<PathForecast, 'best' | 'expected' | 'worst'>;
  readonly byCause: Readonly<Partial<Record<ExplainedCause, Millis>>>;
  /** Time that a pod must accept connections after its deletion, in milliseconds. */
  readonly mustServe: Millis | undefined;
  readonly reasons: readonly string[];
}

/** The prediction for a Deployment and the way to lose nothing. Durations in milliseconds. */
export interface RolloutReport {
  readonly namespace: string;
  readonly deployment: string;
  readonly rate: number;
  readonly proxy: DetectedProxy;
  readonly proxyTiming: ProxyTiming;
  /** How the longest delay is known, where the cluster says it. */
  readonly delayFrom: string | undefined;
  readonly loadBalancers: readonly { readonly service: string; readonly profile: string; readonly from: string }[];
  readonly workload: PathForecast['workload'];
  readonly paths: readonly PathReport[];
  /** Limits of this prediction, for people. */
  readonly notes: readonly string[];
  readonly isLossless: boolean;
  /** Absent if nothing is lost, or if no change was found. */
  readonly suggestion: Suggestion | undefined;
}

/** Predicts the next rollout. Throws `ConfigError` for wrong options, and if a load balancer has to be named. */
export function rolloutReport(objects: RolloutObjects, options: CheckOptions): RolloutReport | undefined {
  const proxy = options.proxy === undefined ? detectProxy(objects) : namedProxy(options.proxy);
  const slow = options.proxyDelay === undefined ? slowDelay(objects, proxy) : undefined;
  const checks = new Map<string, DetectedCheck>();
  const conditions: ForecastConditions = {
    proxy: proxy.timing,
    proxyDelay: options.proxyDelay ?? slow?.longest,
    gate: gateOf(objects, proxy),
    drain: options.drain,
    checkOf: (service) => {
      const name = service.metadata.name ?? '';
      const found =
        options.loadBalancer === undefined
          ? (checks.get(name) ?? detectCheck(service, objects.nodes))
          : namedCheck(options.loadBalancer);
      checks.set(name, found);
      return found.check;
    },
  };
  const { paths, isLossless } = forecast(objects, conditions);
  const [first] = paths;
  if (first === undefined) return undefined;
  const hasSleepAction = (oldestKubelet(objects.nodes) ?? 30) >= 30;
  const surroundings = { objects, options, proxy, conditions };
  return {
    namespace: objects.namespace,
    deployment: objects.deployment.metadata.name ?? '',
    rate: options.rate,
    proxy,
    proxyTiming: proxyTimingOf(conditions),
    delayFrom: slow && `metrics of ${slow.nodes} nodes, ${slow.changes} changes`,
    loadBalancers: [...checks].map(([service, { check, from }]) => ({ service, profile: check.name, from })),
    workload: first.workload,
    paths: paths.map((path) => pathReport(path, reasonsOf(path, surroundings), options.rate)),
    notes: notesOf(paths, surroundings),
    isLossless,
    suggestion: isLossless ? undefined : suggestChanges(objects, { ...conditions, hasSleepAction }),
  };
}

/** The measured delay, if it is longer than the known one: metrics of a quiet cluster do not have two changes within a second. */
function slowDelay({ delay }: RolloutObjects, { timing: proxy }: DetectedProxy): MeasuredDelay | undefined {
  if (delay === undefined || 'why' in delay) return undefined;
  const { longest } = proxyTimingOf({ proxy, proxyDelay: undefined }).noticesTerminating;
  return delay.longest > longest ? delay : undefined;
}

/** The gate needs Switchyard's agents, or observers beside kube-proxy. If the cluster cannot be read, a hook that asks the gate has its reason. */
function gateOf({ hasGate = true, daemonSets }: RolloutObjects, { timing }: DetectedProxy): ForecastConditions['gate'] {
  if (!hasGate) return 'absent';
  const isOwn = timing === 'switchyard' || timing === 'switchyard-iptables';
  return isOwn || (timing.startsWith('kube-proxy') && daemonSets?.some(isAnsweringObserver)) ? 'answers' : 'expires';
}

function isAnsweringObserver({ spec }: DaemonSet): boolean {
  return (spec?.template.spec?.containers ?? []).some(({ command = [] }) =>
    ['--switchyard-observe', '--switchyard-drain-gate'].every((flag) => command.includes(flag)),
  );
}

function pathReport(path: PathForecast, reasons: readonly string[], rate: number): PathReport {
  const { clients, service, by, policy, noneUp, check, best, expected, worst, byCause, mustServe } = path;
  return {
    clients,
    service,
    by,
    policy,
    loadBalancer: check?.name,
    requests: lostRequests(path, rate),
    lostTime: { best, expected, worst },
    byCause,
    noneUp,
    mustServe,
    reasons,
  };
}
