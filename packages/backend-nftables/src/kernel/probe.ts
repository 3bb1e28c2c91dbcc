import { release } from 'node:os';
import { millis } from '@switchyard/core';
import type { BackendCapabilities, ProbeResult } from '@switchyard/core/engine';
import type { NftTransport } from './transport.ts';
import { type RuleFeature, ruleFeatures } from '../render/rule-features.ts';
import { skeleton } from '../render/skeleton.ts';
import { NativeError, openScratchNamespace } from '@switchyard/native';
import { TableWriter } from './netlink/table-writer.ts';
import { NftError } from './nft-error.ts';
import type { TableDescription } from '../render/rules/model.ts';

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

/** Asks the kernel whether it takes a table, without an effect on any packet of this machine. */
export interface RuleTrial extends Disposable {
  /** Why the kernel refuses the table; undefined when it takes it. Throws `HostError` where it does not answer. */
  refusal(table: TableDescription): NftError | undefined;
}

/** Longest wait for a namespace, in milliseconds. */
const namespaceTimeout = 20_000;

/** Opens a trial in a network namespace of its own; where none can be had, in transactions that are never committed. Rejects with `HostError`. */
export async function openRuleTrial(netns: string | undefined, signal: AbortSignal): Promise<RuleTrial> {
  try {
    using scratch = await openScratchNamespace(AbortSignal.any([signal, AbortSignal.timeout(namespaceTimeout)]));
    // The writer's socket keeps the namespace.
    return trialWith(new TableWriter({ netns: scratch.path }), 'in a network namespace made for the trial', 'load');
  } catch (error) {
    signal.throwIfAborted();
    const writer = new TableWriter({ netns });
    return trialWith(writer, `in a transaction that is not committed, as ${whyNoNamespace(error)}`, 'check');
  }
}

function whyNoNamespace(error: unknown): string {
  if (error instanceof NativeError) return `${error.syscall} of a network namespace failed with ${error.errnoName}`;
  return `the kernel made no network namespace within ${namespaceTimeout / 1000} s`;
}

/** `where` ends the first sentence of a refusal. */
function trialWith(writer: TableWriter, where: string, how: 'load' | 'check'): RuleTrial {
  return {
    refusal: (table) => {
      const attempt = `cannot make table inet ${table.name} ${where}`;
      try {
        writer[how]({ attempt, table, mode: 'create' });
        return undefined;
      } catch (error) {
        if (error instanceof NftError) return error;
        throw error;
      }
    },
    [Symbol.dispose]: () => writer[Symbol.dispose](),
  };
}
