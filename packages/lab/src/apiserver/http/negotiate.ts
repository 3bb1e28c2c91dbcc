import { StatusError } from '../status-error.ts';

/** In which form objects are sent. */
export type Representation = 'object' | 'table' | 'metadata';

interface MediaRange {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Picks the first form of the Accept header that the server has; rejects with a 406 Status if there is none. */
export function negotiate(accept: string | undefined): Representation {
  const ranges = parseAccept(accept);
  if (ranges.length === 0) return 'object';
  for (const { type, parameters } of ranges) {
    if (type === '*/*' || type === 'application/*') return 'object';
    if (type !== 'application/json') continue;
    const as = parameters.get('as');
    if (as === undefined) return 'object';
    if (parameters.get('g') !== 'meta.k8s.io' || parameters.get('v') !== 'v1') continue;
    if (as === 'Table') return 'table';
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') return 'metadata';
  }
  const message = '406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch';
  throw new StatusError({ code: 406, reason: 'NotAcceptable', message, details: {} });
}

/** Whether the client takes aggregated discovery documents (KEP-3352) of version v2. */
export function acceptsAggregatedDiscovery(accept: string | undefined): boolean {
  return parseAccept(accept).some(
    ({ parameters }) => parameters.get('as') === 'APIGroupDiscoveryList' && parameters.get('v') === 'v2',
  );
}

function parseAccept(accept: string | undefined): readonly MediaRange[] {
  if (accept === undefined || accept.trim() === '') return [];
  return accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    return {
      type,
      parameters: new Map(
        parameters.map((parameter) => {
          const equals = parameter.indexOf('=');
          return [parameter.slice(0, equals), parameter.slice(equals + 1)] as const;
        }),
      ),
    };
  });
}
