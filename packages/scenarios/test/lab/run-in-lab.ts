import { probeSctp } from '@switchyard/lab';
import { type IpAddress, ipFamilyOf, millis, systemClock } from '@switchyard/core';
import {
  type AltitudeResult,
  clusterObjects,
  expectationText,
  keptExpectation,
  firstState,
  flowText,
  healthStepText,
  healthText,
  nextState,
  nodeAddresses,
  nothingChanges,
  observationText,
  restartText,
  type Scenario,
  type ScenarioFlow,
  type ScenarioHealthCheck,
  type ScenarioStep,
  type StepResult,
} from '../../src/index.ts';
import type { LabMode } from './lab-mode.ts';
import { type Attempts, isExpected, probeFlow, type Seen, seenOf } from './probe-flow.ts';
import type { Stage } from './stage.ts';

type FlowStep = Extract<ScenarioStep, { readonly kind: 'flow' }>;
type HealthStep = Extract<ScenarioStep, { readonly kind: 'healthCheck' }>;

/**
 * Altitude 3: real packets through the real agent's kernel. Steps that only look run side by side; what changes the
 * cluster waits for them.
 */
export async function runInLab(
  scenario: Scenario,
  { stage, mode }: { readonly stage: Stage; readonly mode: LabMode },
  signal: AbortSignal,
): Promise<AltitudeResult> {
  const steps: StepResult[] = [];
  let state = firstState(scenario);
  await stage.agent.reset(scenario, mode, signal);
  await stage.agent.deliver(clusterObjects(scenario, state), signal);
  let looks: (FlowStep | HealthStep)[] = [];
  const look = async (): Promise<void> => {
    const results = looks.map((step) =>
      step.kind === 'flow'
        ? flowInLab(step, stage, signal)
        : healthInLab(step, healthPortOf(scenario, step.check.service), stage, signal),
    );
    looks = [];
    steps.push(...(await Promise.all(results)));
  };
  for (const [index, step] of scenario.steps.entries()) {
    if (step.kind === 'flow' || step.kind === 'healthCheck') {
      looks.push(step);
      continue;
    }
    await look();
    const next = nextState(state, step);
    if (next !== state) await stage.agent.deliver(clusterObjects(scenario, next), signal);
    state = next;
    if (step.kind === 'restartAgent') steps.push(await restart(step.line, flowBeside(scenario, index), stage, signal));
  }
  await look();
  return { altitude: 'lab', steps, skipped: [] };
}

async function flowInLab({ flow, line }: FlowStep, stage: Stage, signal: AbortSignal): Promise<StepResult> {
  const narrowed = keptExpectation(flow);
  const attempts = await attemptsOf(flow, stage, signal);
  if (flow.sourcePort !== undefined) await untilMoved(flow, attempts, signal);
  const seen = await probeFlow(narrowed, attempts);
  const expected = expectationText(flow.expect);
  const text = seen.status === 'observed' ? observationText(seen.observation, flow) : seen.text;
  // A client at its endpoint, and at no other, is what every altitude means by the whole set.
  const isKept = flow.kept !== undefined && text === expectationText(narrowed);
  const observed = isKept ? expected : flow.kept === undefined ? text : `${text}, not kept at ${flow.kept}`;
  const because = [`${seen.attempts} attempts showed this${isKept ? `, all at ${flow.kept}` : ''}`];
  return { line, step: flowText(flow), expected, observed, isAsExpected: expected === observed, because };
}

/** A flow that goes on follows a change a moment later: a wrong answer counts when it stays. */
async function untilMoved({ expect }: ScenarioFlow, attempts: Attempts, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonic() + 1000;
  while (systemClock.monotonic() < until) {
    if ((await attempts(1)).every((one) => isExpected(one, expect))) return;
    await systemClock.sleep(millis(20), signal);
  }
}

/** How to make attempts of a flow. */
async function attemptsOf(flow: ScenarioFlow, stage: Stage, signal: AbortSignal): Promise<Attempts> {
  const family = ipFamilyOf(flow.to);
  const { host, source } = stage.senderOf(flow);
  const context = {
    addressesByEcho: stage.addressesByEcho,
    isOfFamily: (address: IpAddress) => ipFamilyOf(address) === family,
    source,
    sender: flow.fromEndpoint,
    masqueradeAddress: nodeAddresses[family]['node1'] ?? '',
  };
  const request = { address: flow.to, port: flow.port, source };
  if (flow.protocol === 'SCTP') {
    return async (count) => (await probeSctp(host, request, count)).map((result) => seenOf(result, context));
  }
  const prober = await stage.proberIn(host, signal);
  const protocol = flow.protocol === 'UDP' ? 'udp' : 'tcp';
  const attempt = async (): Promise<Seen> => {
    const sourcePort = flow.sourcePort ?? stage.freshPort(host);
    return seenOf(await prober.probe({ protocol, ...request, sourcePort }), context);
  };
  if (flow.sourcePort !== undefined) {
    return async (count) => {
      const seen: Seen[] = [];
      for (let left = count; left > 0; left--) seen.push(await attempt());
      return seen;
    };
  }
  return (count) => Promise.all(Array.from({ length: count }, attempt));
}

/** The server follows the kernel, a moment later: a wrong answer counts when it stays. */
async function healthInLab(
  { check, line }: HealthStep,
  port: number,
  stage: Stage,
  signal: AbortSignal,
): Promise<StepResult> {
  const address = nodeAddresses[check.ipFamily]['node1'] ?? '';
  const prober = await stage.proberIn(stage.lab.client, signal);
  const expected = healthText(check);
  const until = systemClock.monotonic() + 1000;
  for (;;) {
    const result = await prober.probe({ protocol: 'http', address, port });
    const observed =
      result.status === 'refused'
        ? 'closed'
        : result.status === 'answered'
          ? answerText(result.httpStatus, result.body, check)
          : result.status;
    if (observed === expected || systemClock.monotonic() > until) {
      return {
        line,
        step: healthStepText(check),
        expected,
        observed,
        isAsExpected: observed === expected,
        because: [],
      };
    }
    await systemClock.sleep(millis(20), signal);
  }
}

/** A Service's health check port, also after the Service is gone. */
function healthPortOf(scenario: Scenario, name: string): number {
  const put = scenario.steps.flatMap((step) => (step.kind === 'putService' ? [step.service] : []));
  const all = [...scenario.services, ...put].filter((service) => service.name === name);
  const port = all.find(({ healthCheckNodePort }) => healthCheckNodePort !== undefined)?.healthCheckNodePort;
  if (port === undefined) throw new Error(`${scenario.id}: ${name} never has a healthCheckNodePort`);
  return port;
}

function answerText(status: number | undefined, body: string, check: ScenarioHealthCheck): string {
  const answer = JSON.parse(body) as {
    readonly service: { readonly namespace: string; readonly name: string };
    readonly localEndpoints: number;
  };
  const key = `${answer.service.namespace}/${answer.service.name}`;
  if (key !== check.service) return `an answer for ${key}`;
  if (status !== 200 && status !== 503) return `status ${status}`;
  return healthText({ status, localEndpoints: check.localEndpoints === undefined ? undefined : answer.localEndpoints });
}

/** Kills the agent and starts it again while a flow that must not notice goes on. */
async function restart(
  line: number,
  flow: ScenarioFlow | undefined,
  stage: Stage,
  signal: AbortSignal,
): Promise<StepResult> {
  const probing = probeMeanwhile(flow, stage, signal);
  try {
    await stage.agent.kill();
    await stage.agent.start(signal);
  } finally {
    await probing.stop();
  }
  const { attempts, wrong } = await probing.stop();
  const observed =
    attempts === 0 ? 'no flow to look at' : wrong === 0 ? nothingChanges : `${wrong} of ${attempts} attempts failed`;
  return {
    line,
    step: restartText,
    expected: nothingChanges,
    observed,
    isAsExpected: observed === nothingChanges,
    because: [`${attempts} attempts meanwhile`],
  };
}

/** Tries a flow every few milliseconds until stopped. */
function probeMeanwhile(
  flow: ScenarioFlow | undefined,
  stage: Stage,
  signal: AbortSignal,
): { readonly stop: () => Promise<{ readonly attempts: number; readonly wrong: number }> } {
  const stopping = new AbortController();
  const run = async (): Promise<{ readonly attempts: number; readonly wrong: number }> => {
    let [attempts, wrong] = [0, 0];
    if (flow === undefined) return { attempts, wrong };
    const attempt = await attemptsOf(flow, stage, signal);
    while (!stopping.signal.aborted) {
      const seen = await attempt(1);
      wrong += seen.filter((one) => !isExpected(one, flow.expect)).length;
      attempts += seen.length;
      await systemClock.sleep(millis(5), signal);
    }
    return { attempts, wrong };
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
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
