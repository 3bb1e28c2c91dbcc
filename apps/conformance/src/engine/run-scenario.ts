import { abortable, type Clock, millis, systemClock, UsageError } from '@switchyard/core';
import {
  expectationText,
  firstState,
  flowText,
  healthStepText,
  healthText,
  keptExpectation,
  nextState,
  nothingChanges,
  observationText,
  restartText,
} from '@switchyard/scenarios';
import type { Scenario, ScenarioFlow, ScenarioHealthCheck, ScenarioStep } from '@switchyard/scenarios';
import { checkIdOf } from '../cases/scenario-cases.ts';
import type { CaseRecorder, TestEnvironment } from '../model/test-environment.ts';
import type { InconclusiveCheck } from '../model/report-file.ts';
import type { ErrorPace, Gate } from './error-pace.ts';
import { type Attempts, isExpected, probeFlow } from './probe-flow.ts';

type FlowStep = Extract<ScenarioStep, { readonly kind: 'flow' }>;
type HealthStep = Extract<ScenarioStep, { readonly kind: 'healthCheck' }>;
type LookStep = FlowStep | HealthStep;

/** Environment of a scenario's run, and recorder of its results. */
export interface ScenarioRun {
  readonly scenario: Scenario;
  readonly signal: AbortSignal;
  readonly environment: TestEnvironment;
  readonly record: CaseRecorder;
  /** Limits the checks that run side by side. */
  readonly gate: Gate;
  /** Shared by all checks in the environment. */
  readonly pace: ErrorPace;
  /** Resolves when failed flows have been followed; the cluster stays as it is until then. */
  readonly traced: () => Promise<unknown>;
}

/** A wrong answer that turns right within this time does not count, in milliseconds: proxies may apply changes with a delay. */
const settleTime = 1000;

/** Whether a scenario has checks only: no step changes anything. */
export function isOnlyLooking({ steps }: Scenario): boolean {
  return steps.every(({ kind }) => kind === 'flow' || kind === 'healthCheck');
}

/**
 * The run with packets: real ones through a real proxy's kernel, one check for each step that looks. The environment has been reset to the
 * scenario's agent settings. Steps that only look run side by side; what changes the cluster waits for them.
 */
export async function runSteps(run: ScenarioRun): Promise<void> {
  const { scenario, environment, signal } = run;
  let state = firstState(scenario);
  await environment.put([{ scenario, state }], { wait: true }, signal);
  let looks: LookStep[] = [];
  for (const [index, step] of scenario.steps.entries()) {
    if (step.kind === 'flow' || step.kind === 'healthCheck') {
      looks.push(step);
      continue;
    }
    await lookAt(looks, run);
    looks = [];
    const next = nextState(state, step);
    if (next !== state) await environment.put([{ scenario, state: next }], { wait: true }, signal);
    state = next;
    if (step.kind === 'restartAgent') await restart(index, step, run);
  }
  await lookAt(looks, run);
}

/**
 * All of these steps, recorded in their order: side by side, unless the scenario says where a client is kept. Then one after
 * another, because each flow may move the client. The cluster must hold the state they are about.
 */
export async function lookAt(looks: readonly LookStep[], run: ScenarioRun): Promise<void> {
  const { scenario, record, traced } = run;
  const look = (step: LookStep): Promise<Looked> =>
    step.kind === 'flow' ? flowCheck(step, run) : healthCheck(step, run);
  const checks = keepsClients(scenario) ? await inTurn(looks, look) : await Promise.all(looks.map(look));
  for (const { check, flow } of checks) {
    if ('observed' in check) record.check(check, flow === undefined ? undefined : { scenario, flow });
    else record.inconclusive(check);
  }
  await traced();
}

/** Whether the order of flows decides where a client is. Without the steps that a cluster cannot do, flows stand side by side that are apart in the lab. */
function keepsClients({ steps }: Scenario): boolean {
  return steps.some((step) => step.kind === 'flow' && step.flow.kept !== undefined);
}

async function inTurn(looks: readonly LookStep[], look: (step: LookStep) => Promise<Looked>): Promise<Looked[]> {
  const checks: Looked[] = [];
  for (const step of looks) checks.push(await look(step));
  return checks;
}

type Check = Parameters<CaseRecorder['check']>[0];

interface Looked {
  readonly check: Check | InconclusiveCheck;
  readonly flow: ScenarioFlow | undefined;
}

/** Probes flows that expect silence before those that may cause ICMP errors: a suppressed error would make silence ambiguous. */
function flowCheck(step: FlowStep, run: ScenarioRun): Promise<Looked> {
  const { pace } = run;
  const look = (): Promise<Looked> => flowLook(step, run);
  switch (step.flow.expect.kind) {
    case 'forward':
      return look();
    case 'drop': {
      const looked = look();
      pace.noteSilent(looked);
      return looked;
    }
    default:
      return pace.afterSilence().then(look);
  }
}

async function flowLook(step: FlowStep, run: ScenarioRun): Promise<Looked> {
  const { scenario, environment, gate, pace, signal } = run;
  const { flow } = step;
  const narrowed = keptExpectation(flow);
  const connector = await environment.connectorFor(scenario, flow, signal);
  const attempts: Attempts = (count) => gate.run(count, () => abortable(connector.attempts(count), signal), signal);
  if (flow.sourcePort !== undefined) await untilMoved(flow, attempts, signal);
  const seen = await probeFlow(narrowed, attempts, pace.limitsFor(flow));
  const about = { id: idOf(scenario, step), what: flowText(flow) };
  if (seen.status === 'inconclusive') return { check: { ...about, because: seen.because }, flow };
  const expected = expectationText(flow.expect);
  const text = seen.status === 'observed' ? observationText(seen.observation, flow) : seen.text;
  // A client at its endpoint, and at no other, is what the other runs mean by the whole set.
  const isKept = flow.kept !== undefined && text === expectationText(narrowed);
  const observed = isKept ? expected : flow.kept === undefined ? text : `${text}, not kept at ${flow.kept}`;
  const because = [`${seen.attempts} attempts showed this${isKept ? `, all at ${flow.kept}` : ''}`];
  return { check: { ...about, expected, observed, because }, flow };
}

/** Every step that looks has one. */
function idOf(scenario: Scenario, step: ScenarioStep): string {
  return checkIdOf(scenario, step) ?? `line ${step.line}`;
}

/** Waits until a continuing flow follows a change: a wrong answer only counts when it persists. */
async function untilMoved({ expect }: ScenarioFlow, attempts: Attempts, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonic() + settleTime;
  while (systemClock.monotonic() < until) {
    if ((await attempts(1)).every((one) => isExpected(one, expect))) return;
    await systemClock.sleep(millis(20), signal);
  }
}

async function healthCheck(step: HealthStep, run: ScenarioRun): Promise<Looked> {
  const { scenario, environment, signal } = run;
  const { check } = step;
  const wait = { clock: systemClock, patience: settleTime };
  const observed = await healthOnceRight(environment, { scenario, check }, wait, signal);
  const about = { id: idOf(scenario, step), what: healthStepText(check), expected: healthText(check) };
  return { check: { ...about, observed, because: [] }, flow: undefined };
}

/** The answer of a health check. A wrong one only counts when it persists: the server is updated after the kernel. */
export async function healthOnceRight(
  environment: TestEnvironment,
  { scenario, check }: { readonly scenario: Scenario; readonly check: ScenarioHealthCheck },
  { clock, patience }: { readonly clock: Clock; readonly patience: number },
  signal: AbortSignal,
): Promise<string> {
  const until = clock.monotonic() + patience;
  for (;;) {
    const observed = await environment.health(scenario, check, signal);
    if (observed === healthText(check) || clock.monotonic() > until) return observed;
    await clock.sleep(millis(20), signal);
  }
}

/** Kills the proxy and starts it again while a flow is probed, which must not be affected. */
async function restart(index: number, step: ScenarioStep, run: ScenarioRun): Promise<void> {
  const { scenario, environment, record, signal } = run;
  const { proxy } = environment;
  if (proxy === undefined)
    throw new UsageError('conformance.restart', `${scenario.id} restarts the proxy, which this environment cannot`);
  const flow = flowBeside(scenario, index);
  const stopping = new AbortController();
  const probing = probeUntil(stopping.signal, flow, run);
  probing.catch(() => undefined); // awaited below, when the proxy has started
  try {
    await proxy.kill();
    await proxy.start();
    await proxy.settled(signal);
  } finally {
    stopping.abort();
    await probing.catch(() => undefined);
  }
  const { attempts, wrong } = await probing;
  const id = idOf(scenario, step);
  if (flow === undefined) return record.skip({ id, because: 'no flow can be sent meanwhile' });
  const observed =
    attempts === 0 ? 'no attempt' : wrong === 0 ? nothingChanges : `${wrong} of ${attempts} attempts failed`;
  const because = [`${attempts} attempts meanwhile`];
  record.check({ id, what: restartText, expected: nothingChanges, observed, because });
}

/** Tries a flow every few milliseconds until stopped. */
async function probeUntil(
  stopped: AbortSignal,
  flow: ScenarioFlow | undefined,
  { scenario, environment, signal }: ScenarioRun,
): Promise<{ readonly attempts: number; readonly wrong: number }> {
  let [attempts, wrong] = [0, 0];
  if (flow === undefined) return { attempts, wrong };
  const connector = await environment.connectorFor(scenario, flow, signal);
  while (!stopped.aborted) {
    const seen = await connector.attempts(1);
    wrong += seen.filter((one) => !isExpected(one, flow.expect)).length;
    attempts += seen.length;
    await systemClock.sleep(millis(5), signal);
  }
  return { attempts, wrong };
}

/** A flow that is forwarded both before and after the step: the nearest that no change separates from it. */
function flowBeside(scenario: Scenario, index: number): ScenarioFlow | undefined {
  const isForwarded = (step: ScenarioStep): step is FlowStep =>
    step.kind === 'flow' && step.flow.expect.kind === 'forward';
  const isLooking = (step: ScenarioStep): boolean => ['flow', 'healthCheck', 'restartAgent'].includes(step.kind);
  const reach = (steps: readonly ScenarioStep[]): readonly ScenarioStep[] => {
    const end = steps.findIndex((step) => !isLooking(step));
    return end < 0 ? steps : steps.slice(0, end);
  };
  const before = reach(scenario.steps.slice(0, index).reverse());
  const after = reach(scenario.steps.slice(index + 1));
  return [...after, ...before].find(isForwarded)?.flow;
}
