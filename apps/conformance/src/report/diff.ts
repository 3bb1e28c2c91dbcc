import { ConfigError } from '@switchyard/core';
import type { CheckResult, ReportFile } from '../model/report-file.ts';
import { type RoundResult, resultsById, type Column, columnsOf } from './columns.ts';

/** A side of the comparison. */
export type Side = 'a' | 'b';

/** Observation of a check by one side. */
export interface SideObservation {
  /** Each text that was observed once, in order of rounds; more than one: unstable. Empty: there was no such check. */
  readonly observed: readonly string[];
  /** Whether the check was as expected in all rounds. */
  readonly isAsExpected: boolean;
}

/** A check that both sides looked at, or only one of them within a case that both ran. */
export interface CheckDifference {
  readonly caseId: string;
  readonly title: string;
  readonly why: string;
  readonly checkId: string;
  readonly what: string;
  readonly a: SideObservation;
  readonly b: SideObservation;
}

/** A case with a result on one side only. */
export interface OneSided {
  readonly caseId: string;
  readonly in: Side;
  /** Reason why the other side has no result: its skip or error, or that it has no such case. */
  readonly because: string;
}

/** Differences between two proxies. */
export interface RunDiff {
  readonly a: DiffSide;
  readonly b: DiffSide;
  /** Checks in which both saw the same. */
  readonly equalChecks: number;
  /** Number of cases that both ran. */
  readonly sharedCases: number;
  readonly differences: readonly CheckDifference[];
  /** Checks whose observation varies between rounds of a side: no difference, since the proxy may not be the cause. */
  readonly unstable: readonly CheckDifference[];
  readonly oneSided: readonly OneSided[];
}

/**
 * Compares what was observed, not the verdicts: proxies of different modes may both be right. Checks with a limit ("under 0.61 s") are
 * equal when both keep it, or when both break it and their texts differ in measured figures alone.
 */
export function diffRuns(a: DiffSide, b: DiffSide): RunDiff {
  const casesA = resultsById(a.column);
  const casesB = resultsById(b.column);
  const compared: Compared[] = [];
  const oneSided: OneSided[] = [];
  let sharedCases = 0;
  for (const id of new Set([...casesA.keys(), ...casesB.keys()])) {
    const inA = observedRounds(casesA.get(id));
    const inB = observedRounds(casesB.get(id));
    if (inA.length > 0 && inB.length > 0) {
      sharedCases++;
      compared.push(...compareCase(id, inA, inB));
    } else if (inA.length > 0) oneSided.push({ caseId: id, in: 'a', because: absence(casesB.get(id)) });
    else if (inB.length > 0) oneSided.push({ caseId: id, in: 'b', because: absence(casesA.get(id)) });
  }
  const those = (outcome: Compared['outcome']): readonly CheckDifference[] =>
    compared.filter((one) => one.outcome === outcome).map(({ check }) => check);
  const equalChecks = those('equal').length;
  return { a, b, equalChecks, sharedCases, differences: those('different'), unstable: those('unstable'), oneSided };
}

/** 1 when anything differs, cases that only one side ran included, as with diff(1); what is unstable alone is no difference. */
export function diffStatus({ differences, oneSided }: RunDiff): 0 | 1 {
  return differences.length + oneSided.length > 0 ? 1 : 0;
}

function observedRounds(rounds: readonly RoundResult[] = []): readonly RoundResult[] {
  return rounds.filter(({ result }) => result.status === 'passed' || result.status === 'failed');
}

function absence(rounds: readonly RoundResult[] = []): string {
  const [first] = rounds;
  return first === undefined ? 'no such case' : `${first.result.status}: ${first.result.because ?? 'no reason given'}`;
}

interface Compared {
  readonly check: CheckDifference;
  readonly outcome: 'equal' | 'different' | 'unstable';
}

function compareCase(caseId: string, a: readonly RoundResult[], b: readonly RoundResult[]): readonly Compared[] {
  const checksA = checksById(a);
  const checksB = checksById(b);
  const { title = '', why = '' } = (a[0] ?? b[0])?.result ?? {};
  // A check that one side could not decide is no difference.
  const undecided = new Set([...a, ...b].flatMap(({ result }) => (result.inconclusive ?? []).map(({ id }) => id)));
  const ids = new Set([...checksA.keys(), ...checksB.keys()]).difference(undecided);
  return [...ids].map((checkId) => {
    const inA = checksA.get(checkId) ?? [];
    const inB = checksB.get(checkId) ?? [];
    const hasLimit = [...inA, ...inB].some(isLimit);
    const meaningsA = textsByMeaning(inA, hasLimit);
    const meaningsB = textsByMeaning(inB, hasLimit);
    const check: CheckDifference = {
      caseId,
      title,
      why,
      checkId,
      what: (inA[0] ?? inB[0])?.what ?? '',
      a: { observed: [...meaningsA.values()], isAsExpected: inA.every(({ isAsExpected }) => isAsExpected) },
      b: { observed: [...meaningsB.values()], isAsExpected: inB.every(({ isAsExpected }) => isAsExpected) },
    };
    return { check, outcome: outcomeOf([...meaningsA.keys()], [...meaningsB.keys()]) };
  });
}

function outcomeOf(a: readonly string[], b: readonly string[]): Compared['outcome'] {
  if (a.length > 1 || b.length > 1) return 'unstable';
  return a[0] === b[0] ? 'equal' : 'different';
}

function checksById(rounds: readonly RoundResult[]): ReadonlyMap<string, readonly CheckResult[]> {
  return Map.groupBy(
    rounds.flatMap(({ result }) => result.checks),
    ({ id }) => id,
  );
}

/** Whether a check has a limit: it is as expected although the texts differ, because the observation is a measured value. */
function isLimit({ isAsExpected, expected, observed }: CheckResult): boolean {
  return isAsExpected && expected !== observed;
}

/** Observations by meaning: the first text of each. */
function textsByMeaning(checks: readonly CheckResult[], hasLimit: boolean): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { isAsExpected, observed } of checks) {
    const meaning = hasLimit && isAsExpected ? 'within the limit' : withoutFigures(observed);
    if (!texts.has(meaning)) texts.set(meaning, observed);
  }
  return texts;
}

/** Measured times and shares differ from run to run. Addresses, ports and counts stay. */
function withoutFigures(text: string): string {
  return text.replaceAll(/\b\d+(?:\.\d+)? ?(?:ms|s|min|%)(?!\w)/g, '#');
}

/** One side of a comparison: a proxy in a cell, all its rounds. */
export interface DiffSide {
  readonly file: string;
  readonly column: Column;
}

/** `A.json#iptables-nft` as file and choice; without a `#` the choice is undefined. */
export function splitSide(argument: string): { readonly file: string; readonly choice: string | undefined } {
  const at = argument.lastIndexOf('#');
  return at < 0
    ? { file: argument, choice: undefined }
    : { file: argument.slice(0, at), choice: argument.slice(at + 1) };
}

/**
 * The side that `choice` names in a report: the name of a proxy (`iptables-nft`), or with its cell (`iptables-nft/ipv6`). Undefined: the
 * only one there is. Throws `ConfigError` with all choices when none or several fit.
 */
export function pickSide(file: string, report: ReportFile, choice: string | undefined): DiffSide {
  const columns = columnsOf(report);
  const fitting = columns.filter(({ key, proxy }) => choice === undefined || choice === key || choice === proxy);
  const [column] = fitting;
  if (column !== undefined && fitting.length === 1) return { file, column };
  const choices = columns.map(({ key }) => `\n  ${file}#${key}`).join('');
  const what =
    columns.length === 0
      ? 'it holds no run'
      : fitting.length === 0
        ? `it holds no run of '${choice ?? ''}'; give one of`
        : `it holds runs of ${fitting.length} proxies or cells${choice === undefined ? '' : ` called '${choice}'`}; give one of`;
  throw new ConfigError('diff.choice', `comparing ${file}: ${what}${columns.length === 0 ? '' : choices}`);
}
