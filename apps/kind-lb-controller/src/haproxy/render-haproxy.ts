import {
  addressAndPort,
  allowedSources,
  type IpAddress,
  ipFamilyOf,
  type Millis,
  millis,
  compareTexts,
} from '@switchyard/core';
import { isProxied } from '../spec/kernel-ports.ts';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';
import { backendsOf, fallOf, type HaproxyBackend, type HaproxyServer, riseOf } from './haproxy-servers.ts';
import { renderWeights, type WeightsProgram } from './render-weights.ts';

/** Inputs of the configuration. */
export interface HaproxyInput {
  /** Any order. */
  readonly specs: readonly LoadBalancerSpec[];
  /** More addresses on which every TCP port is served, for all specs: where published ports arrive. Usually empty. */
  readonly ownAddresses: readonly IpAddress[];
  /** Path prefix of programs for weights, see `HaproxyFiles`. */
  readonly weightsPrefix: string;
}

/** All of a haproxy.cfg but its base: `renderBase` comes before it, in the same file or in one before. */
export interface HaproxyConfiguration {
  readonly text: string;
  readonly servers: readonly HaproxyServer[];
  /** What `text` needs beside it. */
  readonly weights: WeightsProgram | undefined;
}

/** Pause between two checks of a server that is DOWN in a second backend: it is there to help as soon as it can. */
const lastDownInterval = millis(500);

/**
 * Renders HAProxy's configuration for these load balancers: per TCP port and IP family one frontend and one backend, and backends
 * that only check for what the kernel forwards. Sorted by cluster, Service, port and family; equal input in any order gives equal text.
 *
 * With no server UP, HAProxy closes connections at once by itself. There must be no rule on `nbsrv` to that end, nor to
 * choose the second backend: an old worker counts none while it stops, at every reload. `srv_is_up` stays true there.
 */
export function renderHaproxy({ specs, ownAddresses, weightsPrefix }: HaproxyInput): HaproxyConfiguration {
  const sorted = [...specs].sort(
    (a, b) => compareTexts(a.id.cluster, b.id.cluster) || compareTexts(a.id.service, b.id.service),
  );
  const backends = sorted.flatMap(backendsOf);
  const sections = backends.flatMap((one) => [
    ...(one.use.kind === 'port' && !one.isLast ? [frontend(one, ownAddresses)] : []),
    backend(one),
  ]);
  const weights = renderWeights(backends, weightsPrefix);
  const globals = [...firstChecks(specs), ...(weights === undefined ? [] : [`    lua-load ${weights.path}`])];
  const text = [heading, ...(globals.length === 0 ? [] : [['global', ...globals]]), defaults, ...sections]
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n');
  return { text, servers: backends.flatMap(({ servers }) => servers), weights };
}

/**
 * New workers spread their first checks over the shortest `inter`, regardless of `downinter`: after a reload a node that is DOWN could wait for
 * seconds. Profiles without a `downInterval` of their own keep HAProxy's way, as the load balancers that they are named after have it.
 */
function firstChecks(specs: readonly LoadBalancerSpec[]): readonly string[] {
  const pauses = specs
    .filter(({ profile }) => profile.downInterval < profile.interval)
    .map(({ profile }) => profile.downInterval);
  return pauses.length === 0 ? [] : [`    max-spread-checks ${formatTime(millis(Math.min(...pauses)))}`];
}

const heading: readonly string[] = ['# Written by switchyard-lb at every change. Do not edit.'];

const defaults: readonly string[] = [
  'defaults',
  '    mode tcp',
  '    timeout client 50000',
  '    timeout server 50000',
  '    load-server-state-from-file global',
];

function frontend(main: HaproxyBackend, ownAddresses: readonly IpAddress[]): readonly string[] {
  const { name, spec, ipFamily, servers } = main;
  const sources = allowedSources({ ipFamily, ranges: spec.sourceRanges, vips: [], nodeIp: undefined });
  const usable = servers.filter(({ draining }) => draining !== 'empty');
  const isLastWanted = spec.profile.whenNoneUp !== 'close' && usable.length > 0;
  return [
    `frontend ${name}`,
    ...bindsOf(main, ownAddresses),
    // One range or server per line: HAProxy limits the words of a line, and lines of one acl add up.
    ...(sources === 'any' ? [] : sources.map((cidr) => `    acl allowed src ${cidr}`)),
    ...(sources === 'any' ? [] : ['    tcp-request connection reject unless allowed']),
    ...(isLastWanted ? usable.map((server) => `    acl up srv_is_up(${name}/${server.name})`) : []),
    ...(isLastWanted ? [`    use_backend ${name}:last unless up`] : []),
    `    default_backend ${name}`,
  ];
}

function bindsOf({ spec, use, ipFamily }: HaproxyBackend, ownAddresses: readonly IpAddress[]): readonly string[] {
  const isOfPort = (one: PortSpec): boolean => isProxied(spec, one) && use.kind === 'port' && one.port === use.port;
  return spec.ports
    .filter(isOfPort)
    .flatMap(({ port, addresses }) =>
      [...new Set([...addresses, ...ownAddresses])]
        .filter((address) => ipFamilyOf(address) === ipFamily)
        .map((address) => `    bind ${addressAndPort(address, port)}`),
    );
}

function backend(one: HaproxyBackend): readonly string[] {
  const { name, use, isLast, spec, servers, checkPath } = one;
  const { timeout, connectTimeout } = spec.profile;
  const isChecked = !(isLast && spec.profile.whenNoneUp === 'all');
  const isLogged = isChecked && (!isLast || use.kind === 'check');
  return [
    `backend ${name}`,
    // Only in backends: frontends would log every connection. Of a second one, only what the kernel must follow.
    ...(isLogged ? ['    log global'] : []),
    ...balance(one),
    `    timeout connect ${formatTime(connectTimeout)}`,
    ...(timeout === undefined || !isChecked ? [] : [`    timeout check ${formatTime(timeout)}`]),
    ...(isChecked ? [`    option httpchk GET ${checkPath}`] : []),
    ...(servers.some(({ isBackup }) => isBackup) ? ['    option allbackups'] : []),
    ...servers.map((server) => serverLine(server, one)),
  ];
}

function balance({ use, spec }: HaproxyBackend): readonly string[] {
  if (use.kind === 'check') return [];
  // Consistent, or a node that comes or goes moves nearly every client.
  if (spec.sessionAffinity.kind === 'clientIP') return ['    balance source', '    hash-type consistent'];
  return ['    balance roundrobin'];
}

function serverLine(server: HaproxyServer, backend: HaproxyBackend): string {
  const { name, address, port, isChecked, isBackup, draining } = server;
  const { use, spec } = backend;
  return [
    `    server ${name} ${addressAndPort(address, port)}`,
    ...(isChecked ? checkWords(server, backend) : []),
    // A backup gets new connections only while no other server is UP; those it has go on.
    ...(isBackup ? ['backup'] : []),
    // Goes on being checked, so that its health is known when it has an endpoint again.
    ...(draining === 'empty' ? ['weight 0'] : []),
    ...(use.kind === 'port' && spec.proxyProtocol === 'v2' ? ['send-proxy-v2'] : []),
  ].join(' ');
}

function checkWords({ address, check }: HaproxyServer, { spec, isLast }: HaproxyBackend): readonly string[] {
  const { interval, downInterval } = spec.profile;
  const down = isLast ? millis(Math.min(interval, downInterval, lastDownInterval)) : downInterval;
  return [
    // With a port of their own, checks never begin with a PROXY header: the proxies' health servers do not speak it.
    `check port ${check.port}`,
    ...(check.address === address ? [] : [`addr ${withoutPort(check.address)}`]),
    `inter ${formatTime(interval)}`,
    ...(down === interval ? [] : [`downinter ${formatTime(down)}`]),
    `fall ${fallOf(spec, isLast)} rise ${riseOf(spec, isLast)}`,
  ];
}

/** HAProxy takes what follows the last colon for a port, even where it allows none. */
function withoutPort(address: IpAddress): string {
  return ipFamilyOf(address) === 'IPv6' ? `[${address}]` : address;
}

/** HAProxy's times: whole seconds where it is one, else milliseconds, at least 1. */
function formatTime(time: Millis): string {
  const rounded = Math.max(1, Math.round(time));
  return rounded % 1000 === 0 ? `${rounded / 1000}s` : `${rounded}ms`;
}
