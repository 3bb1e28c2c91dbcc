import { type Millis, seconds } from '@switchyard/core';
import type { Container } from '@switchyard/core/kubernetes';

/** Effect of a container's preStop hook on the time before SIGTERM. */
export type PreStop =
  | { readonly kind: 'none' }
  | { readonly kind: 'sleep'; readonly duration: Millis }
  /** Waits at the drain gate until the pod can be stopped, for `longest` at most. */
  | { readonly kind: 'gate'; readonly longest: Millis; readonly what: string }
  /** Its duration cannot be known from here; it begins with sleeps of `atLeast`. */
  | { readonly kind: 'unknown'; readonly atLeast: Millis; readonly what: string };

/** Longest wait of the drain gate, and of the program that asks it, in seconds, if the hook does not name one. */
const gateDefault = 20;

/** Reads `sleep: {seconds}` (KEP-3960), `exec` of `sleep N`, plain or through a shell, requests to the drain gate, and `switchyard-drain-hook`. */
export function preStopOf({ lifecycle }: Pick<Container, 'lifecycle'>): PreStop {
  const hook = lifecycle?.preStop;
  if (hook === undefined || hook === null) return { kind: 'none' };
  if (typeof hook.sleep?.seconds === 'number') return { kind: 'sleep', duration: seconds(hook.sleep.seconds) };
  if (hook.httpGet !== undefined && hook.httpGet !== null) return gateOr(`GET ${hook.httpGet.path ?? '/'}`, seconds(0));
  const command = hook.exec?.command;
  if (command === undefined) return { kind: 'unknown', atLeast: seconds(0), what: Object.keys(hook).join(', ') };
  const { duration, isAll } = sleepsOf(command);
  return isAll ? { kind: 'sleep', duration } : gateOr(command.join(' '), duration);
}

/** Returns the least time that a hook takes. */
export function leastPreStop(preStop: PreStop): Millis {
  if (preStop.kind === 'sleep') return preStop.duration;
  return preStop.kind === 'unknown' ? preStop.atLeast : seconds(0);
}

function gateOr(what: string, atLeast: Millis): PreStop {
  const [call] = /\/drain\?pod=\S*|(?:^|[\s/])switchyard-drain-hook(?![\w.-])[^;&|]*/.exec(what) ?? [];
  if (call === undefined) return { kind: 'unknown', atLeast, what };
  const [, longest = gateDefault] = /(?:[?&]seconds=|--seconds )(\d+)/.exec(call) ?? [];
  return { kind: 'gate', longest: seconds(Number(longest)), what };
}

/** Sleeps at the beginning of a hook. `isAll`: it does nothing else. */
interface Sleeps {
  readonly duration: Millis;
  readonly isAll: boolean;
}

const noSleeps: Sleeps = { duration: seconds(0), isAll: false };

/** `sleep 5`, `/bin/sleep 5s`, `sh -c "sleep 5"`, `bash -ec "exec sleep 5; true"`: the sleeps of a plain list of commands. */
function sleepsOf(command: readonly string[]): Sleeps {
  const [program = '', ...rest] = command;
  const name = program.split('/').at(-1) ?? '';
  if (name === 'sleep') return sumOf([durationOf(rest)], true);
  const script = rest[rest.findIndex((one) => /^-\w*c$/.test(one)) + 1];
  if (!/^(ba|da|a|z|k)?sh$/.test(name) || script === undefined || script === rest[0]) return noSleeps;
  const parts = script.split(/;|&&|\n/).map((part) => part.trim().replace(/^exec\s+/, ''));
  const other = parts.findIndex((part) => !isSleep(part) && !isInstant(part)); // it may take its time
  const sleeps = (other < 0 ? parts : parts.slice(0, other)).filter(isSleep);
  return sumOf(
    sleeps.map((part) => durationOf(part.split(/\s+/).slice(1))),
    other < 0 && sleeps.length > 0,
  );
}

function sumOf(durations: readonly (number | undefined)[], isAll: boolean): Sleeps {
  if (durations.includes(undefined)) return noSleeps;
  return { duration: seconds(durations.reduce((sum: number, one) => sum + (one ?? 0), 0)), isAll };
}

function isSleep(part: string): boolean {
  return /^(\/\S*\/)?sleep\s/.test(part);
}

function isInstant(part: string): boolean {
  return part === '' || part === 'true' || part === ':' || /^(echo|exit)\b/.test(part);
}

const unitSeconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** In seconds. Like coreutils: several durations add up, each a number with an optional unit. */
function durationOf(texts: readonly string[]): number | undefined {
  let sum = 0;
  for (const text of texts) {
    const [, value, unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text) ?? [];
    if (value === undefined) return undefined;
    sum += Number(value) * (unitSeconds[unit] ?? 0);
  }
  return texts.length === 0 ? undefined : sum;
}
