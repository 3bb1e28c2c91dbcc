import { objectArgument, requireOneOf, wrongArgument } from '../../base/argument.ts';
import { ipFamilyOf, type IpAddress, requireIp } from '../ip/address.ts';
import { protocols, tryParsePort } from '../ip/port.ts';
import { sourceClasses } from './forwarding-table.ts';

/** Throws `UsageError`, which names the field and its value, for anything that `Flow` excludes. */
export function checkFlow(value: unknown): void {
  const flow = objectArgument('explain: flow', value);
  const at = (field: string): string => `explain: flow.${field}`;
  requireOneOf(at('from'), flow['from'], sourceClasses);
  for (const field of ['source', 'destination']) requireIp(at(field), flow[field]);
  const { source, destination } = flow as { readonly source: IpAddress; readonly destination: IpAddress };
  if (ipFamilyOf(source) !== ipFamilyOf(destination)) {
    throw wrongArgument(at('source'), `of the family of the destination ${destination}`, source);
  }
  if (tryParsePort(flow['destinationPort']) === undefined) {
    throw wrongArgument(at('destinationPort'), 'a port (1-65535)', flow['destinationPort']);
  }
  requireOneOf(at('protocol'), flow['protocol'], protocols);
  requireOneOf(at('destinationIsLocal'), flow['destinationIsLocal'], [true, false]);
  requireOneOf(at('isSentHere'), flow['isSentHere'], [true, false, undefined]);
  const { incomingInterface } = flow;
  if (incomingInterface !== undefined && typeof incomingInterface !== 'string') {
    throw wrongArgument(at('incomingInterface'), 'a text or undefined', incomingInterface);
  }
}

/** Throws `UsageError` unless `value` has the traits that `explain` reads. */
export function checkTraits(value: unknown): void {
  const traits = objectArgument('explain: traits', value);
  const oneOf = (field: string, values: readonly string[]): void =>
    requireOneOf(`explain: traits.${field}`, traits[field], values);
  oneOf('translation', ['packets', 'sockets']);
  oneOf('unmatchedClusterIps', ['refused', 'passed']);
  oneOf('sourceRangesWithoutEndpoints', ['checked', 'unchecked']);
  oneOf('externalIpsRefuse', ['everyone', 'arriving']);
}
