import type { OpenDataplane } from '../open-backends.ts';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { HostError, type Millis } from '@switchyard/core';
import type { ProxyMode } from '../config/proxy-mode.ts';

/**
 * What is in the kernel of some modes. A mode that this host cannot run is left out if another can be told; one that cannot be read
 * only if another has rules. Rejects with `HostError`.
 */
export async function dumpModes(
  open: (mode: ProxyMode) => Promise<OpenDataplane>,
  modes: readonly ProxyMode[],
  signal: AbortSignal,
): Promise<string> {
  const texts: string[] = [];
  const errors: HostError[] = [];
  for (const mode of modes) {
    try {
      texts.push(await dumpText((await open(mode)).backends, signal));
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      errors.push(error);
    }
  }
  const [first] = texts;
  if (first === undefined) throw errors[0] ?? new HostError('host.unusable', 'no mode can be looked at');
  const full = texts.filter((text) => /^[^#]/m.test(text));
  if (full.length > 0) return full.join('');
  const unread = errors.find(({ code }) => code !== 'host.unusable');
  if (unread !== undefined) throw unread; // else rules that are there would be told as "nothing"
  return first;
}

/** What is in the kernel, for people, family by family, each with the age of its rules at the head. Disposes the backends. */
export async function dumpText(backends: readonly DataplaneBackend[], signal: AbortSignal): Promise<string> {
  const texts: string[] = [];
  for (const backend of backends) {
    texts.push(await familyDumpText(backend, signal));
    await backend[Symbol.asyncDispose]();
  }
  return texts.join('');
}

/** What is in the kernel of one family, with the age of its rules at the head. The backend stays open, and may be applying. */
export async function familyDumpText(backend: DataplaneBackend, signal: AbortSignal): Promise<string> {
  const body = await backend.dump(signal);
  return `${await headOf(backend, body, signal)}${body}`;
}

async function headOf(backend: DataplaneBackend, body: string, signal: AbortSignal): Promise<string> {
  return `# ${backend.ipFamily}: ${ageText(await backend.observers.age?.read(signal), body)}\n`;
}

function ageText(age: Millis | undefined, body: string): string {
  if (age !== undefined) return `rules last known to be right ${Math.round(age / 1000)} s ago`;
  return body === '' ? 'nothing of ours is in the kernel' : 'nobody said when the rules were last known to be right';
}
