import { type Millis, seconds } from '@switchyard/core';
import type { Container } from '@switchyard/core/kubernetes';

/** Effect of a container's preStop hook on the time before SIGTERM. */
export type PreStop =
  | { readonly kind: 'none' }
  | { readonly kind: 'sleep'; readonly duration: Millis }
  /** It does something that cannot be known from here. */
  | { readonly kind: 'unknown'; readonly what: string };

/** Reads `sleep: {seconds}` (KEP-3960) and `exec` of `sleep N`, plain or through a shell. */
export function preStopOf({ lifecycle }: Pick<Container, 'lifecycle'>): PreStop {
  const hook = lifecycle?.preStop;
  if (hook === undefined || hook === null) return { kind: 'none' };
  if (typeof hook.sleep?.seconds === 'number') return { kind: 'sleep', duration: seconds(hook.sleep.seconds) };
  if (hook.httpGet !== undefined) return { kind: 'unknown', what: `GET ${hook.httpGet.path ?? '/'}` };
  const command = hook.exec?.command;
  if (command === undefined) return { kind: 'unknown', what: Object.keys(hook).join(', ') };
  const duration = sleepOf(command);
  return duration === undefined ? { kind: 'unknown', what: command.join(' ') } : { kind: 'sleep', duration };
}

/** `sleep 5`, `/bin/sleep 5s`, `sh -c "sleep 5"`, `bash -ec "exec sleep 5; true"`: the sleeps of a plain list of commands. */
function sleepOf(command: readonly string[]): Millis | undefined {
  const [program = '', ...rest] = command;
  const name = program.split('/').at(-1) ?? '';
  if (name === 'sleep') return durationOf(rest);
  const script = rest.at(-1);
  if (!/^(ba|da|a|z|k)?sh$/.test(name) || !/^-\w*c$/.test(rest.at(-2) ?? '') || script === undefined) return undefined;
  const parts = script.split(/;|&&|\n/).map((part) => part.trim().replace(/^exec\s+/, ''));
  const sleeps = parts.filter((part) => /^(\/\S*\/)?sleep\s/.test(part));
  // Anything that is not a sleep, or nothing at all, may take its time.
  if (sleeps.length === 0 || !parts.every((part) => sleeps.includes(part) || isInstant(part))) return undefined;
  const durations = sleeps.map((part) => durationOf(part.split(/\s+/).slice(1)));
  if (durations.includes(undefined)) return undefined;
  return seconds(durations.reduce((sum: number, one) => sum + (one ?? 0), 0) / 1000);
}

function isInstant(part: string): boolean {
  return part === '' || part === 'true' || part === ':' || /^(echo|exit)\b/.test(part);
}

const unitSeconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** Like coreutils: several durations add up, each a number with an optional unit. */
function durationOf(texts: readonly string[]): Millis | undefined {
  let sum = 0;
  for (const text of texts) {
    const [, value, unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text) ?? [];
    if (value === undefined) return undefined;
    sum += Number(value) * (unitSeconds[unit] ?? 0);
  }
  return texts.length === 0 ? undefined : seconds(sum);
}
