import type { OpenDataplane } from '../open-backends.ts';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { HostError } from '@switchyard/core';
import type { ProxyMode } from '../config/proxy-mode.ts';

/**
 * Returns the kernel state of some modes as text. Omits modes that this host cannot run if another one can be read, and unreadable
 * modes only if another one has rules. Rejects with `HostError`.
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
  if (first === undefined) throw errors[0] ?? new HostError('host.unusable', 'no mode can be read');
  const full = texts.filter((text) => /^[^#]/m.test(text));
  if (full.length > 0) return full.join('');
  const unread = errors.find(({ code }) => code !== 'host.unusable');
  if (unread !== undefined) throw unread; // otherwise existing rules would be reported as none
  return first;
}

/** Returns the kernel state of each family as text, headed by the age of its rules. Disposes the backends. */
export async function dumpText(backends: readonly DataplaneBackend[], signal: AbortSignal): Promise<string> {
  const texts: string[] = [];
  for (const backend of backends) {
    texts.push(await familyDumpText(backend, signal));
    await backend[Symbol.asyncDispose]();
  }
  return texts.join('');
}

/** Returns the kernel state of one family, headed by the age of its rules. The backend stays open, and may be applying. */
export async function familyDumpText(backend: DataplaneBackend, signal: AbortSignal): Promise<string> {
  const body = await backend.dump(signal);
  const age = await backend.observers.age?.read(signal);
  const unknown = body === '' ? 'the kernel holds no state of this agent' : 'age of the rules unknown';
  const head = age === undefined ? unknown : `rules last known to be right ${Math.round(age / 1000)} s ago`;
  return `# ${backend.ipFamily}: ${head}\n${body}`;
}
