import {
  addressAndPort,
  type IpAddress,
  ipFamilyOf,
  type Millis,
  type NodeName,
  type Port,
  type ServicePortRecord,
} from '@switchyard/core';
import { allowedSources } from '@switchyard/core';
import type { LoadBalancerNode } from '../cluster/cluster-objects.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import { backendName, safeName } from './haproxy-names.ts';
import type { Bind, ServedService } from '../plan/plan.ts';

/** What the configuration depends on. */
export interface HaproxyInput {
  /** Any order. */
  readonly services: readonly ServedService[];
  /** Any order; those that are not usable are left out here. */
  readonly nodes: readonly LoadBalancerNode[];
  readonly profile: HealthProfile;
  /** Absolute path of the stats socket, which also hands listening sockets over at a reload. */
  readonly adminSocket: string;
  /** Absolute path from which a reload learns which servers are DOWN. */
  readonly serverStateFile: string;
}

/** A server line's identity: as long as none of it changes, its health may be carried over a reload. */
export interface HaproxyServer {
  readonly backend: string;
  readonly name: string;
  readonly address: IpAddress;
  readonly port: Port;
  readonly checkPort: Port;
}

/** A complete haproxy.cfg. */
export interface HaproxyConfiguration {
  readonly text: string;
  readonly servers: readonly HaproxyServer[];
}

/** One frontend with its backend. */
interface Listener {
  readonly name: string;
  readonly bind: Bind;
  readonly service: ServedService;
  readonly servers: readonly HaproxyServer[];
}

/**
 * The haproxy.cfg for all load-balanced Service ports: per port and IP family one frontend and one backend, sorted by
 * Service, port and family, servers by node name. Equal input in any order gives equal text.
 *
 * With no server UP, HAProxy closes connections at once by itself. There must be no rule on `nbsrv` to that end:
 * an old worker counts none while it stops, and would reject what it has just accepted, at every reload.
 */
export function renderHaproxy(input: HaproxyInput): HaproxyConfiguration {
  const listeners = input.services
    .flatMap((service) => service.binds.map((bind) => listenerOf(service, bind, input)))
    .sort((a, b) => compareListeners(a, b));
  const text = [
    ...preamble(input),
    ...listeners.flatMap((listener) => ['', ...frontend(listener), '', ...backend(listener, input.profile)]),
  ];
  return { text: `${text.join('\n')}\n`, servers: listeners.flatMap((listener) => listener.servers) };
}

function preamble({ profile, adminSocket, serverStateFile }: HaproxyInput): readonly string[] {
  return [
    '# Written by switchyard-lb at every change. Do not edit.',
    'global',
    '    log stdout format raw local0 info',
    `    stats socket ${adminSocket} mode 600 level admin expose-fd listeners`,
    `    server-state-file ${serverStateFile}`,
    '',
    'defaults',
    '    mode tcp',
    `    timeout connect ${Math.max(1, Math.round(profile.connectTimeout))}`,
    '    timeout client 50000',
    '    timeout server 50000',
    ...(profile.timeout === undefined ? [] : [`    timeout check ${formatTime(profile.timeout)}`]),
    '    load-server-state-from-file global',
  ];
}

function frontend({ name, bind, service }: Listener): readonly string[] {
  const family = ipFamilyOf(bind.address);
  const sources = allowedSources({
    ipFamily: family,
    ranges: service.record.loadBalancerSourceRanges,
    vips: [],
    nodeIp: undefined,
  });
  return [
    `frontend ${name}`,
    `    bind ${addressAndPort(bind.address, bind.port.port)}`,
    // One range per line: HAProxy limits the words of a line, and lines of one acl add up.
    ...(sources === 'any' ? [] : sources.map((cidr) => `    acl allowed src ${cidr}`)),
    ...(sources === 'any' ? [] : ['    tcp-request connection reject unless allowed']),
    `    default_backend ${name}`,
  ];
}

function backend({ name, service, servers }: Listener, profile: HealthProfile): readonly string[] {
  const timing = `inter ${formatTime(profile.interval)} fall ${profile.fall} rise ${profile.rise}`;
  const isSourceHashed = service.record.sessionAffinity.kind === 'clientIP';
  return [
    `backend ${name}`,
    '    log global', // only here: frontends would log every connection
    // Consistent, or a node that comes or goes moves nearly every client.
    ...(isSourceHashed ? ['    balance source', '    hash-type consistent'] : ['    balance roundrobin']),
    '    option httpchk GET /healthz',
    ...servers.map(
      ({ name: server, address, port, checkPort }) =>
        `    server ${server} ${addressAndPort(address, port)} check port ${checkPort} ${timing}`,
    ),
  ];
}

function listenerOf(service: ServedService, bind: Bind, { nodes, profile }: HaproxyInput): Listener {
  const { record } = service;
  const family = ipFamilyOf(bind.address);
  const name = backendName(record.key, bind.port.port, family);
  const checkPort =
    record.externalTrafficPolicy === 'Local'
      ? (record.healthCheckNodePort ?? profile.clusterPort)
      : profile.clusterPort;
  const servers = nodes
    .filter((node) => node.isUsable)
    .flatMap((node) =>
      serverOf(
        node,
        bind.port,
        node.addresses.find((ip) => ipFamilyOf(ip) === family),
      ),
    )
    .map((server) => ({ backend: name, checkPort, ...server }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { name, bind, service, servers };
}

function serverOf(
  node: { readonly name: NodeName },
  { nodePort }: ServicePortRecord,
  address: IpAddress | undefined,
): readonly { readonly name: string; readonly address: IpAddress; readonly port: Port }[] {
  return address === undefined || nodePort === undefined
    ? []
    : [{ name: safeName(node.name), address, port: nodePort }];
}

function compareListeners(a: Listener, b: Listener): number {
  const byKey = a.service.record.key.localeCompare(b.service.record.key, 'en');
  if (byKey !== 0) return byKey;
  return a.bind.port.port - b.bind.port.port || a.name.localeCompare(b.name, 'en');
}

/** HAProxy's times: whole seconds where it is one, else milliseconds, at least 1. */
function formatTime(time: Millis): string {
  const rounded = Math.max(1, Math.round(time));
  return rounded % 1000 === 0 ? `${rounded / 1000}s` : `${rounded}ms`;
}
