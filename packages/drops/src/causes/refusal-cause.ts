import type { Explanation, ReasonCode } from '@switchyard/core';
import type { CauseCode } from './causes.ts';

/** Reasons of `explain` that refuse a packet. */
const refusals: Partial<Record<ReasonCode, CauseCode>> = {
  noUsableEndpoints: 'noEndpoints',
  noLocalEndpoints: 'noLocalEndpoint',
  sourceNotAllowed: 'sourceNotAllowed',
  unknownPortOfClusterIp: 'unknownPort',
  unallocatedClusterIp: 'unallocatedAddress',
};

/** Codes of reasons that say which endpoints cannot be used. */
const details = /^endpoint/;
const maxDetails = 3;

/** Cause of a refusal by the dataplane, with the decisive reason and the first endpoints that cannot be used. */
export function refusalCause({ reasons }: Explanation): { readonly cause: CauseCode; readonly why: string } {
  const decisive = reasons.find(({ code }) => refusals[code] !== undefined);
  const unusable = reasons.filter(({ code }) => details.test(code));
  const more = unusable.length > maxDetails ? [`and ${unusable.length - maxDetails} more`] : [];
  const texts = [
    decisive?.text ?? 'the Service refuses it',
    ...unusable.slice(0, maxDetails).map(({ text }) => text),
    ...more,
  ];
  return {
    cause: (decisive === undefined ? undefined : refusals[decisive.code]) ?? 'noEndpoints',
    why: texts.join('; '),
  };
}
