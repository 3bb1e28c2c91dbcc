import * as check from '../base/argument.ts';
import type { IpFamily } from '../model/ip/address.ts';
import { type Millis, millis } from '../base/time.ts';
import { type HttpAnswer, jsonAnswer } from './http-answer.ts';

/** Progress of one family. */
export interface FamilyProgress {
  /** Waiting time of the oldest change without a successful apply; undefined when none waits. */
  readonly pendingFor: Millis | undefined;
  /** Wall clock of the last successful apply; undefined before the first. */
  readonly lastApplied: Millis | undefined;
}

/** Input of the health decision. */
export interface ProxyHealthInput {
  readonly families: ReadonlyMap<IpFamily, FamilyProgress>;
  /** A change that waits this long makes its family unhealthy (kube-proxy: twice the sync period). */
  readonly timeout: Millis;
  /**
   * KEP-3836: false when the Node of this agent is being removed, or missing from a complete list of Nodes. True
   * while starting up.
   */
  readonly isNodeEligible: boolean;
}

/** The health of one family, for the answer's `status`. */
export interface FamilyHealth {
  readonly isHealthy: boolean;
  readonly lastApplied: Millis | undefined;
}

/** The health of the proxy, decided. */
export interface ProxyHealth {
  /**
   * Whether no change waits for too long. An idle proxy stays live, and so does one that has nothing to
   * apply yet. healthCheckNodePort servers and /livez use it.
   */
  readonly isLive: boolean;
  /** Whether every family was applied at least once; before that, this node refuses packets that it should forward. */
  readonly isProgrammed: boolean;
  /** Whether the proxy is live and programmed and the node eligible; /healthz uses it. */
  readonly isReady: boolean;
  readonly isNodeEligible: boolean;
  readonly families: ReadonlyMap<IpFamily, FamilyHealth>;
}

/** Decides the health from the progress of the families. Throws `UsageError` for input of other types. */
export function proxyHealth(input: ProxyHealthInput): ProxyHealth {
  const checks = { families: requireMap, timeout: check.requireNumber, isNodeEligible: requireBoolean };
  check.requireFields('proxyHealth: input', input, checks);
  const families = new Map(
    [...input.families].map(([family, { pendingFor, lastApplied }]) => [
      family,
      { isHealthy: pendingFor === undefined || pendingFor < input.timeout, lastApplied },
    ]),
  );
  const all = [...families.values()];
  const isLive = all.every((one) => one.isHealthy);
  const isProgrammed = all.every((one) => one.lastApplied !== undefined);
  return {
    isLive,
    isProgrammed,
    isReady: isLive && isProgrammed && input.isNodeEligible,
    isNodeEligible: input.isNodeEligible,
    families,
  };
}

/** Returns the answer of /healthz, for load balancers: includes node eligibility. Throws `UsageError` for arguments of other types. */
export function healthzAnswer(health: ProxyHealth, now: Millis): HttpAnswer {
  requireHealth('healthzAnswer', health, now);
  const { isReady, isNodeEligible } = health;
  return answer(isReady, health, now, { nodeEligible: isNodeEligible, healthy: health.isLive && health.isProgrammed });
}

/** Returns the answer of /livez, for the kubelet: excludes node eligibility, which is no reason to restart. Throws `UsageError` for arguments of other types. */
export function livezAnswer(health: ProxyHealth, now: Millis): HttpAnswer {
  requireHealth('livezAnswer', health, now);
  return answer(health.isLive, health, now, { healthy: health.isLive });
}

const requireBoolean: check.ArgumentCheck = check.oneOf(true, false);
const requireMap: check.ArgumentCheck = check.withMethods('get', 'values');

function requireHealth(name: string, health: unknown, now: unknown): void {
  const booleans = { isLive: requireBoolean, isProgrammed: requireBoolean, isReady: requireBoolean };
  const checks = { ...booleans, isNodeEligible: requireBoolean, families: requireMap };
  check.requireFields(`${name}: health`, health, checks);
  if (!Number.isFinite(now)) throw check.wrongArgument(`${name}: now`, 'a time in milliseconds', now);
}

/** `verdict.healthy` is about the proxy alone, as in kube-proxy: on a node that is being removed it is true in a 503 answer. */
function answer(
  isGood: boolean,
  health: ProxyHealth,
  now: Millis,
  verdict: { readonly nodeEligible?: boolean; readonly healthy: boolean },
): HttpAnswer {
  const times = [...health.families.values()].flatMap(({ lastApplied }) => lastApplied ?? []);
  const latest = times.length === 0 ? undefined : millis(Math.max(...times));
  return jsonAnswer(isGood ? 200 : 503, {
    // On success "now", on failure the actual time: otherwise an idle proxy would look dead.
    lastUpdated: timeText(isGood ? now : latest),
    currentTime: timeText(now),
    ...verdict,
    status: Object.fromEntries(
      [...health.families].map(([family, { lastApplied, isHealthy: healthy }]) => [
        family,
        { lastUpdated: timeText(lastApplied), healthy },
      ]),
    ),
  });
}

/** Formats a time as RFC 3339; undefined becomes the zero time that Go programs print and expect. */
function timeText(time: Millis | undefined): string {
  return time === undefined ? '0001-01-01T00:00:00Z' : new Date(time).toISOString();
}
