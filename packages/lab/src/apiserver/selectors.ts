import { type JsonObject, objectAt, stringAt } from './json.ts';
import type { ResourceDefinition } from './resource.ts';
import { badRequest } from './status-error.ts';

/** Predicate of one object; undefined instead of a function matches all objects. */
export type ObjectMatcher = (object: JsonObject) => boolean;

type Requirement = (labels: JsonObject) => boolean;

/** Parses a label selector such as `app=web,!canary,zone in (a,b)`. Rejects with a 400 Status. */
export function parseLabelSelector(text: string): ObjectMatcher | undefined {
  if (text.trim() === '') return undefined;
  const requirements = splitTopLevel(text).map(parseRequirement);
  return (object) => {
    const labels = objectAt(object, 'metadata', 'labels');
    return requirements.every((requirement) => requirement(labels));
  };
}

/** Parses a field selector such as `metadata.name=web,spec.clusterIP!=None`. Rejects with a 400 Status. */
export function parseFieldSelector(text: string, resource: ResourceDefinition): ObjectMatcher | undefined {
  if (text.trim() === '') return undefined;
  const terms = text.split(',').map((term) => parseFieldTerm(term, resource));
  return (object) => terms.every((term) => term(object));
}

/** The name that a field selector pins with `metadata.name=`, or undefined. */
export function nameOfFieldSelector(text: string): string | undefined {
  const match = /(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)/.exec(text);
  return match?.[1];
}

/** Splits at commas that are not inside parentheses. */
function splitTopLevel(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') depth++;
    else if (text[index] === ')') depth--;
    else if (text[index] === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.map((part) => part.trim());
}

const key = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`;
const value = '[A-Za-z0-9._-]*';
const equality = new RegExp(`^(${key})\\s*(=|==|!=)\\s*(${value})$`);
const membership = new RegExp(`^(${key})\\s+(in|notin)\\s*\\(([^)]*)\\)$`);
const existence = new RegExp(`^(!?)\\s*(${key})$`);

function parseRequirement(text: string): Requirement {
  const equal = equality.exec(text);
  if (equal !== null) {
    const [, name = '', operator, wanted = ''] = equal;
    return operator === '!=' ? (labels) => labels[name] !== wanted : (labels) => labels[name] === wanted;
  }
  const member = membership.exec(text);
  if (member !== null) {
    const [, name = '', operator, list = ''] = member;
    const values = new Set(list.split(',').map((item) => item.trim()));
    const has = (labels: JsonObject): boolean => typeof labels[name] === 'string' && values.has(labels[name]);
    return operator === 'in' ? has : (labels) => !has(labels);
  }
  const exists = existence.exec(text);
  if (exists !== null) {
    const [, not, name = ''] = exists;
    return not === '!' ? (labels) => labels[name] === undefined : (labels) => labels[name] !== undefined;
  }
  const found = /[=!<>,()]/.exec(text.replace(/^[^=!<>,()]*(?:==|=|!=)?/, ''))?.[0] ?? '';
  throw badRequest(`unable to parse requirement: found '${found}', expected: identifier`);
}

function parseFieldTerm(text: string, resource: ResourceDefinition): ObjectMatcher {
  const match = /^([^=!]+)(!=|==|=)(.*)$/.exec(text);
  if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${text}'`);
  const [, field = '', operator, wanted = ''] = match;
  const read = readerOf(field, resource);
  if (read === undefined) throw badRequest(`field label not supported: ${field}`);
  return operator === '!=' ? (object) => read(object) !== wanted : (object) => read(object) === wanted;
}

function readerOf(field: string, resource: ResourceDefinition): ((object: JsonObject) => string) | undefined {
  if (field === 'metadata.name') return (object) => stringAt(object, 'metadata', 'name');
  if (field === 'metadata.namespace') return (object) => stringAt(object, 'metadata', 'namespace');
  return resource.fieldSelectors[field];
}
