import { parseIp } from '@switchyard/core';
import type { TracedVerdict } from '@switchyard/core/testing';
import type { Observation } from '../../src/index.ts';

/** A tracer's verdict in the terms of scenarios. */
export function observationOf(verdict: TracedVerdict): Observation {
  if (verdict.kind !== 'forward') return verdict;
  return { kind: 'forward', to: verdict.endpoints.map(placeOf), masquerade: verdict.masquerade };
}

function placeOf(text: string): { readonly address: ReturnType<typeof parseIp>; readonly port: number } {
  const end = text.lastIndexOf(':');
  return { address: parseIp(text.slice(0, end).replace(/^\[|\]$/g, '')), port: Number(text.slice(end + 1)) };
}
