import { ConfigError, type Millis, millis, parseGoDuration } from '@switchyard/core';
import { annotationPrefix } from '../cluster/cluster-objects.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { HealthCheckChanges, PlanDefaults, ServiceSettings } from './settings.ts';

/** An annotation of this controller with an invalid value. */
export interface AnnotationProblem {
  readonly kind: 'annotation';
  /** The full name. */
  readonly name: string;
  /** As written. */
  readonly value: string;
  /** The fault and the valid values: the part of a sentence after a colon. */
  readonly fault: string;
}

/** Settings and problems from the annotations of one Service. */
export interface ParsedAnnotations {
  /** Undefined if there is any problem: annotations are never applied in part. */
  readonly settings: ServiceSettings | undefined;
  /** Sorted by name. */
  readonly problems: readonly AnnotationProblem[];
}

/** Annotations we know, without `annotationPrefix`. */
export const annotationNames = [
  'fast-drain',
  'health-check-down-interval',
  'health-check-fall',
  'health-check-interval',
  'health-check-profile',
  'health-check-rise',
  'health-check-timeout',
  'path',
  'proxy-protocol',
] as const;

type AnnotationName = (typeof annotationNames)[number];
type Refuse = (name: AnnotationName, fault: string) => undefined;

/** Reads our annotations of one Service, which have full names; those of others are ignored. */
export function parseAnnotations(
  annotations: Readonly<Record<string, string>>,
  defaults: PlanDefaults,
): ParsedAnnotations {
  const problems = unknownOnes(annotations);
  const refuse: Refuse = (name, fault) => {
    const full = `${annotationPrefix}${name}`;
    problems.push({ kind: 'annotation', name: full, value: annotations[full] ?? '', fault });
    return undefined;
  };
  const read = <T>(name: AnnotationName, parse: (text: string) => T): T | undefined => {
    const text = annotations[`${annotationPrefix}${name}`];
    if (text === undefined) return undefined;
    try {
      return parse(text.trim());
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return refuse(name, error.message);
    }
  };
  const path = read('path', oneOf('proxy', 'transparent')) ?? 'proxy';
  const proxyProtocol = read('proxy-protocol', oneOf('none', 'v2')) ?? 'none';
  const fastDrain = read('fast-drain', oneOf('true', 'false'));
  if (path === 'transparent' && proxyProtocol === 'v2') {
    refuse(
      'proxy-protocol',
      `not with ${annotationPrefix}path: transparent, which keeps the client's address by itself`,
    );
  }
  const name = read('health-check-profile', (text) => {
    defaults.healthProfileOf(text, {}); // throws for one that there is not
    return text;
  });
  const changes = healthCheckChanges(read);
  const profile = problems.length > 0 ? undefined : changedProfile(name, changes, defaults, refuse);
  problems.sort((a, b) => (a.name < b.name ? -1 : 1));
  if (profile === undefined) return { settings: undefined, problems };
  const isFastDrain = fastDrain === undefined ? defaults.isFastDrain : fastDrain === 'true';
  return { settings: { profile, path, proxyProtocol, isFastDrain }, problems };
}

function unknownOnes(annotations: Readonly<Record<string, string>>): AnnotationProblem[] {
  const known = new Set<string>(annotationNames.map((name) => `${annotationPrefix}${name}`));
  return Object.entries(annotations)
    .filter(([name]) => name.startsWith(annotationPrefix) && !known.has(name))
    .map(([name, value]) => ({
      kind: 'annotation',
      name,
      value,
      fault: `there is no such annotation; there is ${annotationNames.join(', ')}`,
    }));
}

const durations = { shortest: millis(100), longest: millis(3_600_000) };
const mostChecks = 100;

const changeParsers = {
  interval: { name: 'health-check-interval', parse: duration },
  downInterval: { name: 'health-check-down-interval', parse: duration },
  timeout: { name: 'health-check-timeout', parse: duration },
  fall: { name: 'health-check-fall', parse: count },
  rise: { name: 'health-check-rise', parse: count },
} as const;

type Read = <T>(name: AnnotationName, parse: (text: string) => T) => T | undefined;

function healthCheckChanges(read: Read): HealthCheckChanges {
  const changes = Object.entries(changeParsers).flatMap(([field, { name, parse }]) => {
    const value = read<number>(name, parse);
    return value === undefined ? [] : [[field, value] as const];
  });
  return Object.fromEntries(changes); // each field has the parser of its type
}

/** Each value by itself is in order; the profile may refuse them together. */
function changedProfile(
  name: string | undefined,
  changes: HealthCheckChanges,
  { healthProfileOf }: PlanDefaults,
  refuse: Refuse,
): HealthProfile | undefined {
  try {
    return healthProfileOf(name, changes);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [blamed] = Object.keys(changes) as (keyof HealthCheckChanges)[];
    return refuse(blamed === undefined ? 'health-check-profile' : changeParsers[blamed].name, error.message);
  }
}

function oneOf<T extends string>(...allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((one) => one === text);
    if (found === undefined) throw wrong(`it must be ${allowed.join(' or ')}`);
    return found;
  };
}

function duration(text: string): Millis {
  const { shortest, longest } = durations;
  const value = /\d/.test(text) ? tryDuration(text) : undefined;
  if (value === undefined || value < shortest || value > longest) {
    throw wrong('it must be a duration of 100ms to 1h, such as 5s or 500ms');
  }
  return value;
}

function tryDuration(text: string): Millis | undefined {
  try {
    return parseGoDuration(text);
  } catch {
    return undefined;
  }
}

function count(text: string): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > mostChecks) throw wrong(`it must be a whole number of 1 to ${mostChecks}`);
  return value;
}

function wrong(fault: string): ConfigError {
  return new ConfigError('lb.annotation', fault);
}
