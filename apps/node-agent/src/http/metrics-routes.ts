import type { Clock, Logger } from '@switchyard/core';
import { type HttpStream, jsonAnswer, textAnswer, type HttpAnswer } from '@switchyard/core/health';
import { kubernetesRelease } from '../config/kubernetes-version.ts';
import type { ProxyMode } from '../config/proxy-mode.ts';
import type { DebugState } from './debug-state.ts';
import type { MetricsPage } from '../metrics/metrics-page.ts';
import { SharedPages } from '../metrics/shared-pages.ts';
import { healthAndSliRoutes, processStartHeader } from './health-routes.ts';
import type { Profiler } from './profiler.ts';
import { profilingRoutes } from './profiling-routes.ts';
import { get, type Route, oneAtATime } from './route.ts';
import { flagzAnswer, type ProcessFacts, statuszAnswer } from './zpages.ts';
import { changesRoute } from './debug-changes.ts';
import { explainAnswer } from './debug-explain.ts';
import { forwardingAnswer } from './debug-forwarding.ts';
import { lossesRoute } from './debug-losses.ts';
import { statusAnswer } from './debug-status.ts';
import { whyRoute } from './debug-why.ts';

/** Views of other parts of the agent that the metrics server serves. */
export interface EndpointViews {
  /** The configuration in force, by the name of its API group: `kubeproxy.config.k8s.io`, and ours. */
  readonly configz: () => Readonly<Record<string, unknown>>;
  readonly flagz: () => ReadonlyMap<string, string>;
  readonly setVerbosity: (verbosity: number) => void;
  readonly process: ProcessFacts;
}

/** Options of the endpoints of the metrics server. */
export interface MetricsRoutesOptions {
  readonly metricsPage: Pick<MetricsPage, 'metricsText'>;
  readonly views: EndpointViews;
  readonly debug: DebugState;
  readonly mode: ProxyMode;
  readonly enableProfiling: boolean;
  /** Gates `ComponentStatusz` and `ComponentFlagz` count here; a gate that is not named is on. */
  readonly featureGates: ReadonlyMap<string, boolean>;
  readonly profiler: () => Promise<Profiler>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Routes of the metrics server: kube-proxy's endpoints, then Switchyard's. */
export function metricsRoutes(options: MetricsRoutesOptions): readonly Route[] {
  const { metricsPage, views, debug, mode, enableProfiling, featureGates, profiler, clock, logger } = options;
  const pages = new SharedPages(metricsPage);
  const isOn = (gate: string): boolean => featureGates.get(gate) ?? true;
  const { commandLine, startTime } = views.process;
  const common = { 'X-Content-Type-Options': 'nosniff', ...processStartHeader(startTime) };
  const profiling = { profiler, commandLine, setVerbosity: views.setVerbosity, logger };
  const routes: readonly Route[] = [
    ...healthAndSliRoutes(startTime),
    get('/proxyMode', () => textAnswer(200, mode)),
    get('/metrics', async ({ headers }, signal): Promise<HttpStream> => {
      const { contentType, pieces } = await pages.metricsText(headers['accept'], signal);
      return { status: 200, headers: { 'Content-Type': contentType, ...common }, pieces };
    }),
    get('/configz', () => jsonAnswer(200, views.configz())),
    ...(isOn('ComponentFlagz') ? [get('/flagz', (request) => flagzAnswer(views.flagz(), request))] : []),
    ...debugRoutes(debug),
    ...(enableProfiling ? profilingRoutes(profiling) : []),
  ];
  if (!isOn('ComponentStatusz')) return routes;
  const paths = [...routes.map(({ path }) => path), '/statusz'];
  const facts = { ...views.process, emulationVersion: kubernetesRelease, paths };
  return [...routes, get('/statusz', (request) => statuszAnswer({ ...facts, now: clock.now() }, request))];
}

/** Routes of Switchyard. They only read, but for `/debug/why`: a `PUT` sends probes, and a trace adds a table meanwhile. */
export function debugRoutes(state: DebugState): readonly Route[] {
  /** As `--switchyard-dump` prints it, family by family. */
  const dump = async (_: unknown, signal: AbortSignal): Promise<HttpAnswer> => {
    const texts: string[] = [];
    for (const one of state.dumps) texts.push(await one(signal));
    return textAnswer(200, texts.join('\n'));
  };
  return [
    get('/debug/forwarding', (request) => forwardingAnswer(state, request)),
    get('/debug/explain', (request) => explainAnswer(state, request)),
    get('/debug/changes', changesRoute(state)),
    get('/debug/losses', lossesRoute(state)),
    get('/debug/status', async () => jsonAnswer(200, await statusAnswer(state))),
    { path: '/debug/why', methods: ['GET', 'PUT'], answer: oneAtATime(whyRoute(state)) },
    get('/debug/dump', oneAtATime(dump)),
  ];
}
