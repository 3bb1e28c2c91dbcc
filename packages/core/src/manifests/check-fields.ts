import { tryParseIp } from '../model/ip/address.ts';
import { tryParseCidr } from '../model/ip/cidr.ts';
import { tryParsePort } from '../model/ip/port.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';

/** Path of a value in an object: field names and list indexes. */
export type FieldPath = readonly (string | number)[];

/** A value that the API would refuse. */
export interface FieldFault {
  readonly path: FieldPath;
  /** Without the path, for example `must be a port (1-65535), not "http"`. */
  readonly message: string;
}

/** Formats a path as the API does: `spec.ports[0].port`, with labels quoted where they need it. */
export function printPath(path: FieldPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (!/^[A-Za-z]\w*$/.test(step)) return `${text}['${step}']`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Returns the faults that the API would find in the fields a proxy reads. Ignores other fields. */
export function checkFields(resource: ResourceKind, object: unknown): readonly FieldFault[] {
  const faults: FieldFault[] = [];
  checks[resource](object, [], (path, message) => faults.push({ path, message }));
  return faults;
}

type Report = (path: FieldPath, message: string) => void;
type Check = (value: unknown, path: FieldPath, report: Report) => void;

function satisfies(what: string, isGood: (value: unknown) => boolean): Check {
  return (value, path, report) => {
    if (!isGood(value)) report(path, `must be ${what}, not ${shorten(value)}`);
  };
}

function shorten(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Whether a value is an object and no list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks the fields of an object. Absent and null fields are valid unless required, as in the API. */
function fields(shape: Readonly<Record<string, Check>>, required: readonly string[] = []): Check {
  return (value, path, report) => {
    if (!isObject(value)) return report(path, `must be an object, not ${shorten(value)}`);
    for (const [name, check] of Object.entries(shape)) {
      const field = value[name] ?? undefined;
      if (field !== undefined) check(field, [...path, name], report);
      else if (required.includes(name)) report([...path, name], 'is required');
    }
  };
}

function listOf(check: Check): Check {
  return (value, path, report) => {
    if (!Array.isArray(value)) return report(path, `must be a list, not ${shorten(value)}`);
    value.forEach((item, index) => check(item, [...path, index], report));
  };
}

function oneOf(...texts: readonly string[]): Check {
  return satisfies(`one of ${texts.join(', ')}`, (value) => typeof value === 'string' && texts.includes(value));
}

const text = satisfies('a text', (value) => typeof value === 'string');
const name = satisfies('a name without "/"', (value) => typeof value === 'string' && /^[^/\s]+$/.test(value));
const flag = satisfies('true or false', (value) => typeof value === 'boolean');
const seconds = satisfies('a number of seconds above 0', (value) => Number.isInteger(value) && Number(value) > 0);
const port = satisfies('a port (1-65535)', (value) => tryParsePort(value) !== undefined);
const portOrZero = satisfies('a port (1-65535)', (value) => value === 0 || tryParsePort(value) !== undefined);
const isIp = (value: unknown): boolean => typeof value === 'string' && tryParseIp(value) !== undefined;
const ip = satisfies('an IP address', isIp);
const ipOrEmpty = satisfies('an IP address', (value) => value === '' || isIp(value));
const clusterIp = satisfies('an IP address or None', (value) => value === '' || value === 'None' || isIp(value));
const cidr = satisfies('a CIDR', (value) => typeof value === 'string' && tryParseCidr(value) !== undefined);
const protocol = oneOf('TCP', 'UDP', 'SCTP');
const policy = oneOf('Cluster', 'Local');

const texts: Check = (value, path, report) => {
  if (!isObject(value)) return report(path, `must be an object, not ${shorten(value)}`);
  for (const [key, item] of Object.entries(value)) text(item, [...path, key], report);
};
const metadata = fields({ name, namespace: name, labels: texts, annotations: texts }, ['name']);
const hints = listOf(fields({ name: text }, ['name']));

const checks: Readonly<Record<ResourceKind, Check>> = {
  Service: fields(
    {
      metadata,
      spec: fields({
        type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
        clusterIP: clusterIp,
        clusterIPs: listOf(clusterIp),
        ipFamilies: listOf(oneOf('IPv4', 'IPv6')),
        ports: listOf(fields({ name: text, protocol, port, nodePort: portOrZero }, ['port'])),
        externalIPs: listOf(ip),
        loadBalancerSourceRanges: listOf(cidr),
        externalTrafficPolicy: policy,
        internalTrafficPolicy: policy,
        healthCheckNodePort: portOrZero,
        sessionAffinity: oneOf('None', 'ClientIP'),
        sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: seconds }) }),
      }),
      status: fields({ loadBalancer: fields({ ingress: listOf(fields({ ip: ipOrEmpty, ipMode: text })) }) }),
    },
    ['metadata', 'spec'],
  ),
  EndpointSlice: fields(
    {
      metadata,
      addressType: oneOf('IPv4', 'IPv6', 'FQDN'),
      ports: listOf(fields({ name: text, protocol, port: portOrZero })),
      endpoints: listOf(
        fields(
          {
            addresses: listOf(text),
            conditions: fields({ ready: flag, serving: flag, terminating: flag }),
            nodeName: text,
            hints: fields({ forZones: hints, forNodes: hints }),
          },
          ['addresses'],
        ),
      ),
    },
    ['metadata', 'addressType'],
  ),
  Node: fields(
    {
      metadata,
      spec: fields({ podCIDR: cidr, podCIDRs: listOf(cidr), taints: listOf(fields({ key: text }, ['key'])) }),
      status: fields({ addresses: listOf(fields({ type: text, address: text }, ['type', 'address'])) }),
    },
    ['metadata'],
  ),
  ServiceCIDR: fields({ metadata, spec: fields({ cidrs: listOf(cidr) }, ['cidrs']) }, ['metadata', 'spec']),
};
