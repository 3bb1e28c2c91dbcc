import * as check from '../../base/argument.ts';
import { requireIp, requireIpFamily, ipFamilyOf, type IpAddress } from '../ip/address.ts';
import { requireCidr } from '../ip/cidr.ts';
import { tryParsePort, protocols } from '../ip/port.ts';
import { sourceClasses } from './forwarding-table.ts';

// Checks of what a caller of `buildTable` gives. The agent calls `buildTableFrom`, whose arguments its own code makes.

interface GivenInput {
  readonly state: unknown;
  readonly dirty: unknown;
  readonly previous: unknown;
  readonly options: unknown;
}

/** Throws `UsageError`, which names the argument and its value, for anything that the types of `buildTable` exclude. */
export function checkTableInput({ state, dirty, previous, options }: GivenInput): void {
  checkState(state);
  if (dirty !== 'all' && !isSet(dirty)) {
    throw check.wrongArgument('buildTable: dirty', "'all' or a set of Services (dirtyServices returns it)", dirty);
  }
  checkOptions(options);
  if (previous === undefined) return;
  checkTable('buildTable: previous', previous);
  const { ipFamily } = previous as { readonly ipFamily: unknown };
  const { ipFamily: wanted } = options as { readonly ipFamily: unknown };
  if (ipFamily !== wanted)
    throw check.wrongArgument('buildTable: previous.ipFamily', `${String(wanted)} as in options`, ipFamily);
}

/** Methods by which a `Map` is known, or another object that can be read like one. */
const mapMethods = ['get', 'values'];

/** Throws `UsageError` unless `value` looks like a forwarding table. */
export function checkTable(name: string, value: unknown): void {
  const table = check.objectArgument(name, value);
  requireIpFamily(`${name}.ipFamily`, table['ipFamily']);
  for (const field of ['services', 'healthChecks']) check.requireMethods(`${name}.${field}`, table[field], mapMethods);
  for (const field of ['nodePortCidrs', 'serviceCidrs']) check.requireList(`${name}.${field}`, table[field]);
  check.objectArgument(`${name}.podDetector`, table['podDetector']);
}

function checkState(value: unknown): void {
  const state = check.objectArgument('buildTable: state', value);
  for (const field of ['services', 'nodes'])
    check.requireMethods(`buildTable: state.${field}`, state[field], mapMethods);
  check.requireList('buildTable: state.serviceCidrs', state['serviceCidrs']);
  check.requireMethods('buildTable: state', state, ['slicesOf']);
}

function checkOptions(value: unknown): void {
  const options = check.objectArgument('buildTable: options', value);
  const at = (field: string): string => `buildTable: options.${field}`;
  const oneOf = (field: string, values: readonly unknown[]): void =>
    check.requireOneOf(at(field), options[field], values);
  requireIpFamily(at('ipFamily'), options['ipFamily']);
  check.requireText(at('nodeName'), options['nodeName']);
  oneOf('masqueradeAll', [true, false]);
  oneOf('terminatingFallback', ['on', 'off']);
  oneOf('externalIps', ['forward', 'ignore']);
  oneOf('routerIpMode', ['localOnly', 'asVip', undefined]);
  oneOf('nodePortsOnLoopback', ['none', 'kernel', 'proxy', undefined]);
  checkPodDetector(at('podDetector'), options['podDetector']);
  if (options['nodeIp'] !== undefined) requireIp(at('nodeIp'), options['nodeIp']);
  const { nodePortCidrs, apiServers = [] } = options;
  check.requireList(at('nodePortCidrs'), nodePortCidrs);
  for (const cidr of nodePortCidrs) requireCidr(at('nodePortCidrs'), cidr);
  check.requireList(at('apiServers'), apiServers);
  for (const server of apiServers) {
    const { address, port } = check.objectArgument(at('apiServers'), server);
    requireIp(at('apiServers: address'), address);
    if (tryParsePort(port) === undefined) throw check.wrongArgument(at('apiServers: port'), 'a port (1-65535)', port);
  }
}

function checkPodDetector(name: string, value: unknown): void {
  const detector = check.objectArgument(name, value);
  switch (detector['kind']) {
    case 'none':
      return;
    case 'cidr':
      return requireCidr(`${name}.cidr`, detector['cidr']);
    case 'interface':
      return check.requireText(`${name}.name`, detector['name']);
    case 'interfacePrefix':
      return check.requireText(`${name}.prefix`, detector['prefix']);
    default:
      check.requireOneOf(`${name}.kind`, detector['kind'], ['none', 'cidr', 'interface', 'interfacePrefix']);
  }
}

/** Whether it is a `Set`, or another object that can be read like one. */
function isSet(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'has' in value && 'size' in value && Symbol.iterator in value;
}

/** Throws `UsageError`, which names the field and its value, for anything that `Flow` excludes. */
export function checkFlow(value: unknown): void {
  const flow = check.objectArgument('explain: flow', value);
  const at = (field: string): string => `explain: flow.${field}`;
  check.requireOneOf(at('from'), flow['from'], sourceClasses);
  for (const field of ['source', 'destination']) requireIp(at(field), flow[field]);
  const { source, destination } = flow as { readonly source: IpAddress; readonly destination: IpAddress };
  if (ipFamilyOf(source) !== ipFamilyOf(destination)) {
    throw check.wrongArgument(at('source'), `of the family of the destination ${destination}`, source);
  }
  if (tryParsePort(flow['destinationPort']) === undefined) {
    throw check.wrongArgument(at('destinationPort'), 'a port (1-65535)', flow['destinationPort']);
  }
  check.requireOneOf(at('protocol'), flow['protocol'], protocols);
  check.requireOneOf(at('destinationIsLocal'), flow['destinationIsLocal'], [true, false]);
  check.requireOneOf(at('isSentHere'), flow['isSentHere'], [true, false, undefined]);
  const { incomingInterface } = flow;
  if (incomingInterface !== undefined && typeof incomingInterface !== 'string') {
    throw check.wrongArgument(at('incomingInterface'), 'a text or undefined', incomingInterface);
  }
}

/** Throws `UsageError` unless `value` has the traits that `explain` reads. */
export function checkTraits(value: unknown): void {
  const traits = check.objectArgument('explain: traits', value);
  const oneOf = (field: string, values: readonly string[]): void =>
    check.requireOneOf(`explain: traits.${field}`, traits[field], values);
  oneOf('translation', ['packets', 'sockets']);
  oneOf('unmatchedClusterIps', ['refused', 'passed']);
  oneOf('sourceRangesWithoutEndpoints', ['checked', 'unchecked']);
  oneOf('externalIpsRefuse', ['everyone', 'arriving']);
}
