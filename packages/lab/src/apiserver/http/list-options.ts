import { type FieldError, forbiddenField, unsupportedField } from '../field-error.ts';
import type { ResourceDefinition } from '../resource.ts';
import { nameOfFieldSelector, parseFieldSelector, parseLabelSelector } from '../selectors.ts';
import { badRequest, internalError, invalidListOptions } from '../status-error.ts';
import type { StoredObject } from '../store/stored-object.ts';
import type { RequestInfo } from './request-info.ts';

/** The query of a list or watch, checked. */
export interface ListOptions {
  readonly isWatch: boolean;
  /** '' when absent. */
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  /** Undefined means no limit. */
  readonly limit: number | undefined;
  readonly continueToken: string;
  readonly sendInitialEvents: boolean;
  readonly allowWatchBookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
  readonly hasSelector: boolean;
  /** Whether an object matches the namespace, the name and both selectors. */
  readonly matches: (object: StoredObject) => boolean;
}

/** Reads and checks the query; rejects with the Status the real server sends. */
export function parseListOptions(query: URLSearchParams, info: RequestInfo): ListOptions {
  const labelText = query.get('labelSelector') ?? '';
  const givenFields = query.get('fieldSelector') ?? '';
  const fieldText = info.name === undefined ? givenFields : `metadata.name=${info.name}`;
  const isWatch = info.isWatchPath || isTrue(query.get('watch'));
  const options = {
    isWatch,
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    limit: positive(query.get('limit')),
    continueToken: query.get('continue') ?? '',
    sendInitialEvents: isTrue(query.get('sendInitialEvents')),
    allowWatchBookmarks: isTrue(query.get('allowWatchBookmarks')),
    timeoutSeconds: positive(query.get('timeoutSeconds')),
    hasSelector: labelText !== '' || fieldText !== '',
    matches: matcherOf(info.resource, info.namespace, labelText, fieldText),
  };
  const errors = isWatch
    ? checkWatch(options, query.has('sendInitialEvents'))
    : checkList(options, query.has('sendInitialEvents'));
  if (errors.length > 0) throw invalidListOptions(errors);
  checkVersion(options);
  return options;
}

type Checked = Pick<ListOptions, 'isWatch' | 'resourceVersion' | 'resourceVersionMatch' | 'continueToken'>;

function checkWatch(options: Checked, hasInitialEvents: boolean): readonly FieldError[] {
  const { resourceVersionMatch: match } = options;
  if (!hasInitialEvents) {
    const why = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    return match === '' ? [] : [forbiddenField('resourceVersionMatch', why)];
  }
  if (match === 'NotOlderThan') return [];
  if (match === '') {
    const why = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    return [forbiddenField('resourceVersionMatch', why)];
  }
  return [unsupportedField('resourceVersionMatch', match, ['NotOlderThan'])];
}

function checkList(options: Checked, hasInitialEvents: boolean): readonly FieldError[] {
  const { resourceVersion, resourceVersionMatch: match } = options;
  const errors: FieldError[] = [];
  if (match !== '') {
    if (resourceVersion === '') {
      const why = 'resourceVersionMatch is forbidden unless resourceVersion is provided';
      errors.push(forbiddenField('resourceVersionMatch', why));
    } else if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(unsupportedField('resourceVersionMatch', match, ['Exact', 'NotOlderThan', '']));
    } else if (match === 'Exact' && resourceVersion === '0') {
      const why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
      errors.push(forbiddenField('resourceVersionMatch', why));
    }
    if (options.continueToken !== '') {
      const why = 'resourceVersionMatch is forbidden when continue is provided';
      errors.push(forbiddenField('resourceVersionMatch', why));
    }
  }
  if (hasInitialEvents) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function checkVersion(options: Checked): void {
  const { resourceVersion: version } = options;
  if (version !== '' && !/^[0-9]+$/.test(version)) {
    const quoted = JSON.stringify(version);
    const why = `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`;
    throw options.isWatch ? internalError(why) : badRequest(`invalid resource version: ${why}`);
  }
  if (!options.isWatch && options.continueToken !== '' && version !== '' && version !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
}

function matcherOf(
  resource: ResourceDefinition,
  namespace: string,
  labelText: string,
  fieldText: string,
): ListOptions['matches'] {
  const labels = parseLabelSelector(labelText);
  const fields = parseFieldSelector(fieldText, resource);
  const name = nameOfFieldSelector(fieldText);
  return (object) =>
    (namespace === '' || object.namespace === namespace) &&
    (name === undefined || object.name === name) &&
    (labels === undefined || labels(object.value)) &&
    (fields === undefined || fields(object.value));
}

function isTrue(text: string | null): boolean {
  return text === 'true' || text === '1';
}

function positive(text: string | null): number | undefined {
  const value = Number(text ?? 0);
  return Number.isInteger(value) && value > 0 ? value : undefined;
}
