import type { IpFamily } from '../model/ip/address.ts';
import type { Millis } from '../base/time.ts';
import { type HttpAnswer, jsonAnswer } from './http-answer.ts';

/** How far one family is behind. */
export interface FamilyProgress {
  /** For how long the oldest change has been waiting for a successful apply; undefined when none waits. */
  readonly pendingFor: Millis | undefined;
  /** Wall clock of the last successful apply; undefined before the first. */
  readonly lastApplied: Millis | undefined;
}

/** What the health of the proxy depends on. */
export interface ProxyHealthInput {
  readonly families: ReadonlyMap<IpFamily, FamilyProgress>;
  /** A change that waits this long makes its family unhealthy (kube-proxy: twice the sync period). */
  readonly timeout: Millis;
  /**
   * KEP-3836: false when our Node is being removed, or unknown although all Nodes were listed. True
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
   * No change waits for too long. An idle proxy is live for ever, and so is one that has nothing to
   * apply yet. This is what healthCheckNodePort servers ask, and /livez.
   */
  readonly isLive: boolean;
  /** Every family was applied at least once: before that, this node refuses what it should forward. */
  readonly isProgrammed: boolean;
  /** Live, programmed, and load balancers may use this node: /healthz. */
  readonly isReady: boolean;
  readonly isNodeEligible: boolean;
  readonly families: ReadonlyMap<IpFamily, FamilyHealth>;
}

/** Decides health from what the families report; nothing is remembered between calls. */
export function proxyHealth(input: ProxyHealthInput): ProxyHealth {
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

/** /healthz, for load balancers: with node eligibility. */
export function healthzAnswer(health: ProxyHealth, now: Millis): HttpAnswer {
  const { isReady, isNodeEligible } = health;
  return answer(isReady, health, now, { nodeEligible: isNodeEligible, healthy: health.isLive && health.isProgrammed });
}

/** /livez, for whoever restarts this process: a node that goes away is no reason to. */
export function livezAnswer(health: ProxyHealth, now: Millis): HttpAnswer {
  return answer(health.isLive, health, now, { healthy: health.isLive });
}

/** `verdict.healthy` is about the proxy alone, as in kube-proxy: on a node that goes away it is true beside a 503. */
function answer(
  isGood: boolean,
  health: ProxyHealth,
  now: Millis,
  verdict: { readonly nodeEligible?: boolean; readonly healthy: boolean },
): HttpAnswer {
  return jsonAnswer(isGood ? 200 : 503, {
    // On success "now", on failure the truth: an idle proxy would look dead otherwise.
    lastUpdated: timeText(isGood ? now : lastUpdated(health)),
    currentTime: timeText(now),
    ...verdict,
    status: Object.fromEntries(
      [...health.families].map(([family, one]) => [
        family,
        { lastUpdated: timeText(one.lastApplied), healthy: one.isHealthy },
      ]),
    ),
  });
}

/** Of the family applied last; those that are behind say it themselves. */
function lastUpdated(health: ProxyHealth): Millis | undefined {
  return [...health.families.values()]
    .map((one) => one.lastApplied)
    .reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined);
}

/** RFC 3339; "never" is the zero time that Go programs print and expect. */
function timeText(time: Millis | undefined): string {
  return time === undefined ? '0001-01-01T00:00:00Z' : new Date(time).toISOString();
}
