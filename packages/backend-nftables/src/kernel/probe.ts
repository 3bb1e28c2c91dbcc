import { release } from 'node:os';
import { millis } from '@switchyard/core';
import type { BackendCapabilities, ProbeResult } from '@switchyard/core/engine';
import type { NftTransport } from './transport.ts';
import { type RuleFeature, ruleFeatures } from '../render/rule-features.ts';
import { openRuleTrial, type RuleTrial } from './rule-trial.ts';
import { skeleton } from '../render/skeleton.ts';

/** The backend's capabilities. Session affinity needs rules that are made at run time. */
export function capabilitiesOf({ canAddClasses }: Pick<NftTransport, 'canAddClasses'>): BackendCapabilities {
  return { usesKernelConntrack: true, sessionAffinity: canAddClasses, sourceRanges: true, minSyncPeriod: millis(0) };
}

export const usable: ProbeResult = { status: 'usable', capabilities: capabilitiesOf({ canAddClasses: true }) };

export interface ProbedHost {
  readonly netns?: string | undefined;
  readonly openTrial?: typeof openRuleTrial;
  readonly release?: string;
}

/** Loads the rule set into a network namespace that ends afterwards; after a refusal tries what it needs one by one. */
export async function probeHost(host: ProbedHost, signal: AbortSignal): Promise<ProbeResult> {
  const { netns, openTrial = openRuleTrial, release: kernel = release() } = host;
  using trial = await openTrial(netns, signal);
  const refusal = trial.refusal(skeleton(tableOf('rules')));
  if (refusal === undefined) return usable;
  const { message } = refusal;
  if (refusal.refusal === 'permission') return { status: 'unusable', reasons: [message] };
  const missing = missingFeatures(trial, ruleFeatures, kernel);
  return { status: 'unusable', reasons: [...missing, `Linux ${kernel} refuses the rule set: ${message}`] };
}

/** Which features this kernel does not have, in words for the operator. */
export function missingFeatures(trial: RuleTrial, features: readonly RuleFeature[], kernel: string): readonly string[] {
  return features.flatMap(({ name, since, items }, index) => {
    const table = { name: tableOf(String(index)), comment: 'trial', items };
    const refusal = trial.refusal(table);
    return refusal === undefined
      ? []
      : [`missing: ${name}; needs ${since}, this is Linux ${kernel}: ${refusal.message}`];
  });
}

/** Tables of a trial stay until it ends: each has a name of its own. */
function tableOf(what: string): string {
  return `switchyard-probe-${what}`;
}
