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
  const fields = { services: requireMap, nodes: requireMap, serviceCidrs: check.requireList };
  check.requireFields('buildTable: state', state, fields);
  check.requireMethods('buildTable: state', state, ['slicesOf']);
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

/** Check for a `Map`, or another object that can be read like one. */
const requireMap = check.withMethods('get', 'values');

const requirePort: check.ArgumentCheck = (name, value) => {
  if (tryParsePort(value) === undefined) throw check.wrongArgument(name, 'a port (1-65535)', value);
};

/** Throws `UsageError` unless `value` looks like a forwarding table. */
export function checkTable(name: string, value: unknown): void {
  check.requireFields(name, value, {
    ipFamily: requireIpFamily,
    services: requireMap,
    healthChecks: requireMap,
    nodePortCidrs: check.requireList,
    serviceCidrs: check.requireList,
    podDetector: check.objectArgument,
  });
}

function checkOptions(value: unknown): void {
  check.requireFields('buildTable: options', value, {
    ipFamily: requireIpFamily,
    nodeName: check.requireText,
    masqueradeAll: check.oneOf(true, false),
    terminatingFallback: check.oneOf('on', 'off'),
    externalIps: check.oneOf('forward', 'ignore'),
    routerIpMode: check.oneOf('localOnly', 'asVip', undefined),
    nodePortsOnLoopback: check.oneOf('none', 'kernel', 'proxy', undefined),
    podDetector: checkPodDetector,
    nodeIp: check.optional(requireIp),
    nodePortCidrs: (name, cidrs) => {
      check.requireList(name, cidrs);
      for (const cidr of cidrs) requireCidr(name, cidr);
    },
    apiServers: check.optional((name, servers) => {
      check.requireList(name, servers);
      for (const server of servers) {
        const { address, port } = check.objectArgument(name, server);
        requireIp(`${name}: address`, address);
        requirePort(`${name}: port`, port);
      }
    }),
  });
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
  check.requireFields('explain: flow', value, {
    from: check.oneOf(...sourceClasses),
    source: requireIp,
    destination: requireIp,
    destinationPort: requirePort,
    protocol: check.oneOf(...protocols),
    destinationIsLocal: check.oneOf(true, false),
    isSentHere: check.oneOf(true, false, undefined),
    incomingInterface: (name, text) => {
      if (text !== undefined && typeof text !== 'string') throw check.wrongArgument(name, 'a text or undefined', text);
    },
  });
  const { source, destination } = value as { readonly source: IpAddress; readonly destination: IpAddress };
  if (ipFamilyOf(source) !== ipFamilyOf(destination)) {
    throw check.wrongArgument('explain: flow.source', `of the family of the destination ${destination}`, source);
  }
}

/** Throws `UsageError` unless `value` has the traits that `explain` reads. */
export function checkTraits(value: unknown): void {
  check.requireFields('explain: traits', value, {
    translation: check.oneOf('packets', 'sockets'),
    unmatchedClusterIps: check.oneOf('refused', 'passed'),
    sourceRangesWithoutEndpoints: check.oneOf('checked', 'unchecked'),
    externalIpsRefuse: check.oneOf('everyone', 'arriving'),
  });
}
