import type { DataplaneBackend } from '@switchyard/core';

/** What is in the kernel, for people, with the age of the rules at its head. Disposes the backends. */
export async function dumpText(backends: readonly DataplaneBackend[], signal: AbortSignal): Promise<string> {
  const heads: string[] = [];
  const bodies: string[] = [];
  for (const backend of backends) {
    heads.push(`# ${backend.ipFamily}: ${await ageText(backend, signal)}\n`);
    bodies.push(await backend.dump(signal));
    await backend[Symbol.asyncDispose]();
  }
  return [...heads, ...bodies].join('');
}

/** What is in the kernel of one family, with the age of its rules at the head. The backend stays open, and may be applying. */
export async function familyDumpText(backend: DataplaneBackend, signal: AbortSignal): Promise<string> {
  return `# ${backend.ipFamily}: ${await ageText(backend, signal)}\n${await backend.dump(signal)}`;
}

async function ageText(backend: DataplaneBackend, signal: AbortSignal): Promise<string> {
  const age = await backend.unreconciledFor?.(signal);
  if (age === undefined) return 'nobody said when the rules were last known to be right';
  return `rules last known to be right ${Math.round(age / 1000)} s ago`;
}
