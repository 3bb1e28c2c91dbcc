import type { ScriptedProxy } from './scripted-proxy.ts';
import {
  flushes,
  ignoresServiceChanges,
  isWhole,
  keepsConditions,
  keepsOldEndpoints,
  onlyOnStart,
  withEndpoints,
  withServices,
  type WrongRow,
} from './wrong-parts.ts';
import { wrongRestarts } from './wrong-restarts.ts';

/** A proxy that does one thing wrong, and the check that must fail. */
export interface WrongProxy {
  readonly sequence: string;
  /** Behind "when it". */
  readonly wrong: string;
  readonly proxy: Partial<ScriptedProxy>;
  /** Of the id of a check that must fail. */
  readonly check: RegExp;
}

const rows: readonly WrongRow[] = [
  ['udp-endpoint-replacement', 'never cleans up UDP flows', { staleFlows: 'all' }, /^replaced\/pod by clusterIP/],
  [
    'udp-endpoint-replacement',
    'leaves out Services without endpoints',
    { staleFlows: 'without endpoints' },
    /^gone\/outside by nodePort/,
  ],
  ['udp-before-service', 'leaves flows that nobody translated', { staleFlows: 'all' }, /^outside by nodePort/],
  ['udp-connected-socket', 'leaves sockets where they were', { keepsSockets: true }, /^replaced\/pod/],
  [
    'udp-connected-socket',
    'takes clients from pods that still serve',
    { leavesServing: false },
    /^it ends, but serves\//,
  ],
  ['udp-connected-socket', 'never cleans up UDP flows', { staleFlows: 'all' }, /^replaced\/outside/],
  ['udp-unconnected-socket', 'shows the endpoint as who answers', { answersAsEndpoint: true }, /^first\/pod/],
  ['udp-endpoint-replacement', 'keeps old endpoints', keepsOldEndpoints, /^gone\/outside by loadBalancerIP/],

  [
    'terminating-one-by-one',
    'never falls back',
    withEndpoints((one) => (one.ready === true ? one : undefined)),
    /^ending, near serving-terminating.*nodePort/,
  ],
  [
    'terminating-one-by-one',
    'uses pods that end beside ready ones',
    withEndpoints((one) => ({ ...one, ready: one.serving, terminating: false })),
    /^ending, near serving-terminating.*clusterIP/,
  ],
  [
    'terminating-one-by-one',
    'uses pods that serve no longer',
    withEndpoints((one) => ({ ...one, serving: true })),
    /terminating, far/,
  ],
  [
    'terminating-one-by-one',
    'breaks connections of pods that end',
    { breaksBy: (_, kernel) => kernel.endpoints.length < 2 },
    /^(pod|outside) by \w+\/ending/,
  ],
  ['terminating-one-by-one', 'does not see that a pod ends', keepsConditions, /^ending, near terminating/],
  ['terminating-one-by-one', 'loses a request at a change', { lostBy: () => 1 }, /^ending\/pod by clusterIP/],
  [
    'terminating-together',
    'never falls back',
    withEndpoints((one) => (one.ready === true ? one : undefined)),
    /both|far serving-terminating/,
  ],
  [
    'terminating-together',
    'breaks connections of pods that end',
    { breaksBy: (_, kernel) => kernel.endpoints.some(({ ready }) => ready !== true) },
    /^outside by nodePort\/ending/,
  ],

  [
    'hold-open',
    'breaks connections at its start',
    { breaksBy: (cause) => cause === 'start' },
    /^active, .*the proxy was killed and started/,
  ],
  [
    'hold-open',
    'breaks connections to endpoints that are gone',
    { breaksBy: (_, kernel) => kernel.endpoints.some(({ ip }) => ip.endsWith('6')) },
    /^active, .*both endpoints are replaced/,
  ],
  [
    'hold-open',
    'breaks connections of a Service that is refused',
    { breaksBy: (_, kernel) => kernel.endpoints.length === 0 },
    /^idle, .*after all that/,
  ],
  [
    'hold-open',
    'breaks connections that source ranges leave out',
    { breaksBy: (_, kernel) => [...kernel.services.values()].some((one) => one.loadBalancerSourceRanges.length > 0) },
    /^active, .*source ranges/,
  ],

  [
    'source-range-edits',
    'does not guard',
    withServices((one) => ({ ...one, loadBalancerSourceRanges: [] })),
    /^another host alone$/,
  ],
  ['source-range-edits', 'does not follow', ignoresServiceChanges, /^another host alone/],
  [
    'source-range-edits',
    'breaks connections',
    { breaksBy: (cause) => cause === 'put' },
    /^outside by loadBalancerIP\/another host alone$/,
  ],
  ['source-range-edits', 'loses a request at a change', { lostBy: () => 1 }, /^unguarded\/outside by nodePort/],

  ['etp-toggle-under-load', 'does not follow', ignoresServiceChanges, /^change 1 to Local\/nodePort/],
  [
    'etp-toggle-under-load',
    'stays at the second policy',
    {
      apply: (wanted, kernel) =>
        [...kernel.services.values()].some((one) => one.externalTrafficPolicy === 'Local')
          ? { ...wanted, services: kernel.services }
          : wanted,
    },
    /^change 2 to Cluster/,
  ],
  ['etp-toggle-under-load', 'loses a request at a change', { lostBy: () => 1 }, /^toggled\/outside by loadBalancerIP/],
  ['itp-toggle-under-load', 'does not follow', ignoresServiceChanges, /^change 1 to Local\/clusterIP/],
  [
    'itp-toggle-under-load',
    'takes it for external traffic too',
    withServices((one) => ({ ...one, externalTrafficPolicy: one.internalTrafficPolicy })),
    /^change 1 to Local\/nodePort/,
  ],
  ['itp-toggle-under-load', 'loses a request at a change', { lostBy: () => 1 }, /^toggled\/pod by clusterIP/],

  ['service-type-tour-under-load', 'keeps the type that was', ignoresServiceChanges, /^stop 2, NodePort\/nodePort/],
  [
    'service-type-tour-under-load',
    'keeps frontends',
    {
      apply: (wanted, kernel) => ({
        ...wanted,
        services: new Map(
          [...wanted.services].map(([name, one]) => [
            name,
            kernel.services.get(name)?.type === 'LoadBalancer' ? (kernel.services.get(name) ?? one) : one,
          ]),
        ),
      }),
    },
    /^stop 4, NodePort\/loadBalancerIP/,
  ],
  ['service-type-tour-under-load', 'loses a request at a change', { lostBy: () => 1 }, /^tour\/pod by clusterIP/],

  [
    'node-port-address-change',
    'stays at the old address',
    { apply: (wanted) => ({ ...wanted, nodeAddress: undefined }) },
    /^changed\/the address of the Node/,
  ],
  ['node-port-address-change', 'takes its rules with it', flushes, /^inside\//],

  ['health-node-ports', 'counts pods that end', withEndpoints((one) => ({ ...one, ready: one.serving })), /^both end/],
  ['health-node-ports', 'counts pods elsewhere', withEndpoints((one) => ({ ...one, node: 'node1' })), /^one elsewhere/],
  [
    'health-node-ports',
    'says that all is well',
    { health: () => '200 with 1 local endpoint(s)' },
    /^the proxy is dead/,
  ],
  ['health-node-ports', 'does not follow at the start', onlyOnStart((_, kernel) => kernel), /^started again/],
  ['health-node-ports', 'keeps the port open', ignoresServiceChanges, /^the external policy is Cluster/],

  ['affinity-timeouts', 'remembers no client', { affinity: 'none' }, /within the timeout$/],
  ['affinity-timeouts', 'never forgets one', { affinity: 'for ever' }, /after the timeout$/],
  [
    'affinity-timeouts',
    'counts from the first visit',
    { affinity: 'from the first visit' },
    /within the timeout of the last visit$/,
  ],

  ['endpoint-churn', 'loses a request at a change', { lostBy: () => 1 }, /^churn\//],
  ['endpoint-churn', 'keeps old endpoints', keepsOldEndpoints, /^the last set/],
  [
    'endpoint-churn',
    'has a moment without endpoints',
    { apply: (wanted) => (wanted.endpoints.length === 3 ? { ...wanted, endpoints: [] } : wanted) },
    /^churn\//,
  ],

  [
    'dual-stack',
    'lets one family wait for the other',
    { apply: (wanted) => (isWhole(wanted) ? wanted : { ...wanted, endpoints: [] }) },
    /meanwhile\//,
  ],
  ['dual-stack', 'loses a request at a change', { lostBy: () => 1 }, /^IPv4 meanwhile\/outside by nodePort/],
  ['dual-stack', 'keeps old endpoints', keepsOldEndpoints, /^IPv6 with none/],
];

/** For every sequence, proxies that it must not let pass. */
export const wrongProxies: readonly WrongProxy[] = [...wrongRestarts, ...rows].map(
  ([sequence, wrong, proxy, check]) => ({
    sequence,
    wrong,
    proxy,
    check,
  }),
);
