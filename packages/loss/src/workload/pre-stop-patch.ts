import type { Container } from '@switchyard/core/kubernetes';
import type { ForecastConditions } from './forecast.ts';
import { preStopOf } from './pre-stop.ts';
import type { JsonObject } from './strategic-patch.ts';

/** How a cluster can delay SIGTERM. */
export interface HookOptions extends Pick<ForecastConditions, 'gate'> {
  /** Kubelets know `preStop.sleep` (KEP-3960, on by default since 1.30). */
  readonly hasSleepAction: boolean;
}

/** A container's patch with a longer preStop hook. */
export interface HookPatch {
  readonly patch: JsonObject;
  /** Seconds that the hook may take; those of an unknown rest are not counted. */
  readonly longest: number;
  /** For people. */
  readonly text: string;
}

const gateUrl = 'http://switchyard-drain-gate.kube-system:10247/drain?pod=$POD_IP';
const gateDefault = 20;
/** Seconds by which the gate's longest wait exceeds the expected one. */
const gateReserve = 10;

/**
 * Lets a container's hook last at least `seconds` before SIGTERM: by a longer sleep, by the drain gate where it answers, or by a sleep before the
 * command that is there. Undefined for a hook that is a request: nothing can be put before it.
 */
export function hookPatch(container: Container, seconds: number, options: HookOptions): HookPatch | undefined {
  const hook = preStopOf(container);
  const isGated = options.gate === 'answers';
  switch (hook.kind) {
    case 'none':
      return isGated ? gateHook(container, seconds) : sleepHook(container, seconds, options);
    case 'sleep':
      return sleepHook(container, seconds, options);
    case 'gate':
      return isGated ? longerGate(container, seconds) : sleepHook(container, seconds, options);
    case 'unknown':
      return sleepBefore(container, seconds, hook.atLeast > 0);
  }
}

function patchOf({ name }: Container, preStop: JsonObject, rest: JsonObject = {}): JsonObject {
  return { name, ...rest, lifecycle: { preStop } };
}

function sleepHook(container: Container, seconds: number, { hasSleepAction }: HookOptions): HookPatch {
  const { exec, httpGet, sleep } = container.lifecycle?.preStop ?? {};
  const isExec = preStopOf(container).kind === 'sleep' ? sleep === undefined : !hasSleepAction;
  // A hook has one action: null removes the other one.
  const removed = {
    ...(exec === undefined || isExec ? {} : { exec: null }),
    ...(httpGet === undefined ? {} : { httpGet: null }),
  };
  const preStop = {
    ...removed,
    ...(isExec ? { exec: { command: ['sleep', String(seconds)] } } : { sleep: { seconds } }),
  };
  return { patch: patchOf(container, preStop), longest: seconds, text: `sleep ${seconds} s` };
}

function gateLimit(seconds: number): number {
  return Math.max(gateDefault, seconds + gateReserve);
}

function gateHook(container: Container, seconds: number): HookPatch {
  const longest = gateLimit(seconds);
  const url = longest === gateDefault ? gateUrl : `${gateUrl}&seconds=${longest}`;
  const hasAddress = container.env?.some(({ name }) => name === 'POD_IP') ?? false;
  const address = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } };
  const preStop = { exec: { command: ['sh', '-c', `wget -qO- "${url}"`] } };
  const patch = patchOf(container, preStop, hasAddress ? {} : { env: [address] });
  return { patch, longest, text: `wait at the drain gate for up to ${longest} s` };
}

function longerGate(container: Container, seconds: number): HookPatch {
  const longest = gateLimit(seconds);
  const { exec, httpGet } = container.lifecycle?.preStop ?? {};
  const preStop =
    exec === undefined
      ? { httpGet: { path: longerRequest(httpGet?.path ?? '', longest) } }
      : { exec: { command: longerCommand(exec.command ?? [], longest) } };
  return { patch: patchOf(container, preStop), longest, text: `wait at the drain gate for up to ${longest} s` };
}

function longerRequest(text: string, longest: number): string {
  return text.replace(/&seconds=\d+/, '').replace(/(\/drain\?pod=[^\s"'&]*)/, `$1&seconds=${longest}`);
}

/** `switchyard-drain-hook` as a program with its arguments, or in the text of a shell; or a request in it. */
function longerCommand(command: readonly string[], longest: number): readonly string[] {
  const program = command.findIndex((word) => /(?:^|\/)switchyard-drain-hook$/.test(word));
  if (program < 0) {
    return command.map((text) =>
      longerRequest(text, longest)
        .replace(/(switchyard-drain-hook [^;&|]*?)--seconds \d+ ?/, '$1')
        .replace(/switchyard-drain-hook(?![\w.-])/, `$& --seconds ${longest}`),
    );
  }
  const given = command.indexOf('--seconds');
  const kept = given < 0 ? command : command.toSpliced(given, 2);
  return kept.toSpliced(program + 1, 0, '--seconds', String(longest));
}

function sleepBefore(container: Container, seconds: number, hasSleep: boolean): HookPatch | undefined {
  const command = container.lifecycle?.preStop?.exec?.command;
  if (command === undefined) return undefined;
  const longer = hasSleep
    ? replaceFirst(command, seconds)
    : ['sh', '-c', `sleep ${seconds}; exec "$@"`, 'sh', ...command];
  const patch = patchOf(container, { exec: { command: longer } });
  return { patch, longest: seconds, text: `sleep ${seconds} s, then as before` };
}

/** The command with its first sleep replaced. */
function replaceFirst(command: readonly string[], seconds: number): readonly string[] {
  const pattern = /\bsleep\s+[\d.]+[smhd]?/;
  const index = command.findIndex((one) => pattern.test(one));
  return command.map((one, place) => (place === index ? one.replace(pattern, `sleep ${seconds}`) : one));
}
