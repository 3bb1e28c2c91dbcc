import { InvariantError, type Millis } from '@switchyard/core';
import type { Column } from '../report/columns.ts';
import { resultsById } from '../report/columns.ts';
import type { CaseResult } from '../model/report-file.ts';
import { type CasePlace, type Level, placeOf, type ProfileName, profiles } from './profiles.ts';

/** Who made an implementation, and where questions go; as in Gateway API's ConformanceReport. */
export interface Implementation {
  readonly organization: string;
  readonly project: string;
  readonly url: string;
  readonly version: string;
  readonly contact: readonly string[];
}

/**
 * `success`: every case passed. `partial`: none failed, and some were skipped or had no verdict. `failure`: a case failed. `none`: no
 * case ran.
 */
export type ProfileOutcome = 'success' | 'partial' | 'failure' | 'none';

/** A case that did not pass. */
export interface CaseNote {
  readonly case: string;
  /** Expected and observed answer, or the reason of a skip. */
  readonly because: string;
}

/** Results of a profile's cases of one level. */
export interface LevelResult {
  readonly result: ProfileOutcome;
  readonly statistics: {
    readonly passed: number;
    readonly failed: number;
    readonly skipped: number;
    readonly inconclusive: number;
  };
  readonly failed?: readonly CaseNote[];
  readonly skipped?: readonly CaseNote[];
  readonly inconclusive?: readonly CaseNote[];
}

/** Results of a profile. */
export interface ProfileResult {
  readonly name: ProfileName;
  readonly required?: LevelResult;
  readonly extended?: LevelResult;
}

/** A published result of one implementation in one mode. */
export interface ConformanceReport {
  readonly apiVersion: typeof apiVersion;
  readonly kind: typeof kind;
  /** RFC 3339, in UTC: the start of the run. */
  readonly date: string;
  readonly implementation: Implementation;
  /** Of the proxy, such as `nftables`. */
  readonly mode: string;
  /** The cluster's, such as `v1.36.2`; `lab`: network namespaces with the API server of the tool. */
  readonly kubernetesVersion: string;
  readonly kernel: string;
  readonly ipFamilies: 'ipv4' | 'ipv6' | 'dual';
  readonly tool: { readonly name: 'switchyard-conformance'; readonly version: string };
  /** Command that repeats the run. */
  readonly reproduce: string;
  readonly rounds: number;
  readonly duration: string;
  readonly profiles: readonly ProfileResult[];
  /** Answers that differ from what the tool expects where the API leaves them open; not counted anywhere. */
  readonly differences?: readonly CaseNote[];
}

export const apiVersion = 'conformance.switchyard.dev/v1alpha1';
export const kind = 'ServiceProxyConformanceReport';

/** Facts of a report that no run knows. */
export interface Publication {
  readonly implementation: Implementation;
  readonly mode: string;
  readonly kubernetesVersion: string;
  readonly reproduce: string;
  readonly toolVersion: string;
}

/** A report of all rounds of a proxy. A case that failed in one round failed. Cases of no profile, such as a user's own, are left out. */
export function conformanceReport(column: Column, publication: Publication): ConformanceReport {
  const [first] = column.runs;
  const outcomes = [...resultsById(column)].flatMap(([id, rounds]) => {
    const place = placeOf({ id });
    if (place === undefined) return [];
    const results = rounds.map(({ result }) => outcomeOfRound(result, place));
    return [{ ...place, ...worstOf(id, results) }];
  });
  const differences = outcomes.flatMap((one) => one.differences);
  return {
    apiVersion,
    kind,
    date: first?.startedAt ?? '',
    implementation: publication.implementation,
    mode: publication.mode,
    kubernetesVersion: publication.kubernetesVersion,
    kernel: first?.kernel ?? '',
    ipFamilies: first?.cell ?? 'dual',
    tool: { name: 'switchyard-conformance', version: publication.toolVersion },
    reproduce: publication.reproduce,
    rounds: column.rounds,
    duration: durationOf(column.runs.reduce((sum, { duration }) => sum + duration, 0) as Millis),
    profiles: (Object.keys(profiles) as ProfileName[]).flatMap((name) => {
      const ofProfile = outcomes.filter(({ profile }) => profile === name);
      if (ofProfile.length === 0) return [];
      const levels = (['required', 'extended'] as const).flatMap((level) => {
        const ofLevel = ofProfile.filter((one) => one.level === level);
        return ofLevel.length === 0 ? [] : [[level, levelResult(ofLevel)] as const];
      });
      return [{ name, ...Object.fromEntries(levels) }];
    }),
    ...(differences.length === 0 ? {} : { differences }),
  };
}

interface Outcome {
  readonly id: string;
  readonly status: 'passed' | 'failed' | 'skipped' | 'inconclusive';
  readonly because: string;
  readonly differences: readonly CaseNote[];
}

const severity = ['failed', 'inconclusive', 'skipped', 'passed'] as const;

/** The worst round counts, but for what is informative. */
function worstOf(id: string, rounds: readonly RoundOutcome[]): Outcome {
  const status = severity.find((one) => rounds.some((round) => round.status === one)) ?? 'skipped';
  const differences = [...new Set(rounds.flatMap((round) => round.differences))];
  return {
    id,
    status,
    because: rounds.find((round) => round.status === status)?.because ?? '',
    differences: differences.map((because) => ({ case: id, because })),
  };
}

interface RoundOutcome extends Pick<Outcome, 'status' | 'because'> {
  readonly differences: readonly string[];
}

function outcomeOfRound(
  { id, status, because = '', checks, inconclusive = [] }: CaseResult,
  { level, isInformative }: CasePlace,
): RoundOutcome {
  const isOpen = (checkId: string): boolean => level === 'informative' || isInformative(checkId);
  const wrong = checks.filter(({ isAsExpected }) => !isAsExpected);
  const texts = (of: typeof wrong): readonly string[] =>
    of.map(({ id: check, what, expected, observed }) => `${check}: ${what}: expected ${expected}, saw ${observed}`);
  const differences = texts(wrong.filter((check) => isOpen(check.id)));
  const faults = texts(wrong.filter((check) => !isOpen(check.id)));
  if (faults.length > 0) return { status: 'failed', because: someOf(faults), differences };
  if (status === 'error') return { status: 'inconclusive', because, differences };
  const open = inconclusive.filter((check) => !isOpen(check.id));
  if (open.length > 0) {
    const reasons = open.map((check) => `${check.id}: ${check.what}: ${check.because}`);
    return { status: 'inconclusive', because: someOf(reasons), differences };
  }
  if (status === 'skipped') return { status: 'skipped', because, differences };
  if (status === 'failed' && wrong.length === 0) throw new InvariantError(`${id} failed without a failed check`);
  return { status: 'passed', because: '', differences };
}

const shownChecks = 3;

function someOf(texts: readonly string[]): string {
  const more = texts.length > shownChecks ? `; and ${texts.length - shownChecks} more` : '';
  return `${texts.slice(0, shownChecks).join('; ')}${more}`;
}

function levelResult(outcomes: readonly (Outcome & { readonly level: Level })[]): LevelResult {
  const of = (status: Outcome['status']) => outcomes.filter((one) => one.status === status);
  const notes = (status: 'failed' | 'skipped' | 'inconclusive') => {
    const found = of(status).map(({ id, because }) => ({ case: id, because }));
    return found.length === 0 ? {} : { [status]: found };
  };
  const statistics = {
    passed: of('passed').length,
    failed: of('failed').length,
    skipped: of('skipped').length,
    inconclusive: of('inconclusive').length,
  };
  return {
    result: resultOf(statistics),
    statistics,
    ...notes('failed'),
    ...notes('skipped'),
    ...notes('inconclusive'),
  };
}

function resultOf({ passed, failed, skipped, inconclusive }: LevelResult['statistics']): ProfileOutcome {
  if (failed > 0) return 'failure';
  if (passed === 0) return 'none';
  return skipped + inconclusive > 0 ? 'partial' : 'success';
}

function durationOf(duration: Millis): string {
  const whole = Math.round(duration / 1000);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
