import * as v from 'valibot';
import { dataplaneNames, type DataplaneName, dataplanes } from './dataplanes.ts';

// Schema of scenario files. Strict: an unknown field is an error, so a typo cannot disable a check.

const port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535));
const protocol = v.picklist(['TCP', 'UDP', 'SCTP']);
const policy = v.picklist(['Cluster', 'Local']);
const key = v.pipe(v.string(), v.regex(/^[a-z0-9-]+\/[a-z0-9-]+$/, 'must be namespace/name'));

const servicePort = v.strictObject({
  name: v.optional(v.string(), ''),
  port,
  protocol: v.optional(protocol, 'TCP'),
  nodePort: v.optional(port),
});

export const serviceSchema = v.strictObject({
  name: key,
  type: v.optional(v.picklist(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']), 'ClusterIP'),
  clusterIP: v.string(),
  ports: v.array(servicePort),
  externalTrafficPolicy: v.optional(policy, 'Cluster'),
  internalTrafficPolicy: v.optional(policy, 'Cluster'),
  externalIPs: v.optional(v.array(v.string()), []),
  loadBalancerIPs: v.optional(
    v.array(v.union([v.string(), v.strictObject({ ip: v.string(), ipMode: v.optional(v.string()) })])),
    [],
  ),
  loadBalancerSourceRanges: v.optional(v.array(v.string()), []),
  healthCheckNodePort: v.optional(port),
  sessionAffinityTimeoutSeconds: v.optional(v.number()),
  labels: v.optional(v.record(v.string(), v.string()), {}),
});

const family = v.optional(v.picklist(['own', 'other']), 'own');

export const endpointSchema = v.strictObject({
  service: key,
  ip: v.string(),
  node: v.picklist(['node1', 'node2']),
  port: v.optional(port, 8080),
  ready: v.optional(v.boolean()),
  serving: v.optional(v.boolean()),
  terminating: v.optional(v.boolean()),
  zoneHints: v.optional(v.array(v.string()), []),
  nodeHints: v.optional(v.array(v.string()), []),
  slice: v.optional(v.string(), '1'),
  family,
});

/** `forward` lists addresses, or `address:port` where the target port matters. */
export const expectationSchema = v.union([
  v.picklist(['drop', 'reject', 'pass']),
  v.strictObject({
    forward: v.pipe(v.array(v.string()), v.minLength(1)),
    /** `packets`: by dataplanes that translate packets; not by sockets that go to the endpoint themselves (ebpf). */
    masquerade: v.union([v.boolean(), v.literal('packets')]),
  }),
]);

const dataplane = v.picklist(dataplaneNames);

/** A value for each dataplane. */
export type PerDataplane<T> = Readonly<Partial<Record<DataplaneName, T>>>;

/** Whether a value is one for each dataplane. */
export function isPerDataplane<T>(given: T | PerDataplane<T>): given is PerDataplane<T> {
  return typeof given === 'object' && given !== null && dataplaneNames.some((name) => name in given);
}

/** A value for each dataplane where they differ. A dataplane that kube-proxy lacks has the value of its `kubeProxyMode` by default. */
function perDataplane<Schema extends v.GenericSchema>(
  schema: Schema,
): v.GenericSchema<unknown, PerDataplane<v.InferOutput<Schema>>> {
  const entries = dataplanes.map(
    ({ name, kubeProxyMode }) => [name, name === kubeProxyMode ? schema : v.optional(schema)] as const,
  );
  // Strict: it has no other names than those of the entries.
  return v.strictObject(Object.fromEntries(entries)) as unknown as ReturnType<typeof perDataplane<Schema>>;
}
const expectations = v.union([expectationSchema, perDataplane(expectationSchema)]);

export const flowSchema = v.strictObject({
  /**
   * `pod`, `node`, `outside`, or the address of an endpoint of the node under test (hairpin). `itself`: the node, from
   * the very address it calls, which is also one of its own.
   */
  from: v.string(),
  to: v.pipe(v.string(), v.regex(/^[0-9.]+:[0-9]+\/(TCP|UDP|SCTP)$/, 'must be address:port/PROTOCOL')),
  expect: expectations,
  /**
   * Source port; steps with the same port are one UDP flow that continues while the cluster changes. `forward` then names one
   * endpoint. Default: every attempt is a new connection.
   */
  fromPort: v.optional(port),
  /** Session affinity: the endpoint, one of those above, at which this client was before. Looked at where clients are remembered. */
  kept: v.optional(v.union([v.string(), perDataplane(v.string())])),
  family,
});

const changesAndChecks = [
  v.strictObject({
    'health-check': v.strictObject({
      service: key,
      status: v.union([v.literal(200), v.literal(503), v.literal('closed')]),
      localEndpoints: v.optional(v.number()),
      family,
    }),
  }),
  v.strictObject({ 'put-service': serviceSchema }),
  v.strictObject({ 'remove-service': key }),
  v.strictObject({ 'put-endpoint': endpointSchema }),
  v.strictObject({ 'remove-endpoint': v.strictObject({ service: key, ip: v.string(), family }) }),
  v.strictObject({ 'node-address': v.string() }),
  v.strictObject({ 'put-service-cidr': v.strictObject({ name: v.string(), cidr: v.string() }) }),
  v.strictObject({ 'remove-service-cidr': v.string() }),
  v.strictObject({ 'restart-agent': v.literal(true) }),
] as const;

const anyStep = v.union([flowSchema, ...changesAndChecks]);
const stepNames = changesAndChecks.flatMap(({ entries }) => Object.keys(entries));

/** A step, checked as what its keys say, so that a mistake is reported at its own place. */
const step: v.GenericSchema<v.InferInput<typeof anyStep>, v.InferOutput<typeof anyStep>> = v.lazy((input) => {
  const keys = typeof input === 'object' && input !== null ? Object.keys(input) : [];
  const named = changesAndChecks.find(({ entries }) => Object.keys(entries).some((name) => keys.includes(name)));
  if (named !== undefined) return named;
  if (keys.some((name) => name in flowSchema.entries)) return flowSchema;
  return v.custom<v.InferOutput<typeof anyStep>>(
    () => false,
    `a step is a flow (from, to, expect) or one of ${stepNames.join(', ')}`,
  );
});

/** A whole file. */
export const scenarioSchema = v.strictObject({
  name: v.string(),
  why: v.string(),
  ipFamilies: v.optional(v.array(v.picklist(['IPv4', 'IPv6'])), ['IPv4', 'IPv6']),
  /** Every Service has both families; `family: other` puts an endpoint, flow or health check into the other one. */
  dualStack: v.optional(v.boolean(), false),
  /** Left out: all of them. */
  dataplanes: v.optional(
    v.strictObject({ run: v.pipe(v.array(dataplane), v.minLength(1)), because: v.pipe(v.string(), v.minLength(1)) }),
  ),
  /** Left out: all kinds of runs. `dataplanes`: the limit is theirs alone. */
  runs: v.optional(
    v.strictObject({
      only: v.pipe(v.array(v.picklist(['table', 'rendering', 'packets'])), v.minLength(1)),
      dataplanes: v.optional(v.pipe(v.array(dataplane), v.minLength(1)), dataplane.options),
      because: v.pipe(v.string(), v.minLength(1)),
    }),
  ),
  given: v.strictObject({
    agent: v.optional(
      v.strictObject({
        detectsPods: v.optional(v.boolean(), true),
        detectLocal: v.optional(
          v.union([
            v.picklist(['ClusterCIDR', 'NodeCIDR']),
            v.strictObject({ bridgeInterface: v.string() }),
            v.strictObject({ interfaceNamePrefix: v.string() }),
          ]),
          'ClusterCIDR',
        ),
        masqueradeAll: v.optional(v.boolean(), false),
        terminatingFallback: v.optional(v.picklist(['on', 'off']), 'on'),
        /** `default`: the flag is not given. */
        nodePortAddresses: v.optional(v.union([v.picklist(['primary', 'default']), v.array(v.string())]), []),
        /** `--iptables-localhost-nodeports`; of no effect to other dataplanes. */
        localhostNodePorts: v.optional(v.boolean(), true),
        /** Feature gate `SwitchyardLoadBalancerIPModeRouter`: a load-balancer IP may have the `ipMode` Router. */
        routerIpMode: v.optional(v.boolean(), false),
      }),
      {},
    ),
    zone: v.optional(v.string(), 'zone-a'),
    services: v.array(serviceSchema),
    endpoints: v.optional(v.array(endpointSchema), []),
    /** Kubernetes objects as they are, beside the others in every state. Only for scenarios of a single family. */
    objects: v.optional(
      v.array(
        v.looseObject({
          apiVersion: v.string(),
          kind: v.literal('EndpointSlice'),
          metadata: v.looseObject({ name: v.string(), namespace: v.string() }),
        }),
      ),
      [],
    ),
  }),
  steps: v.pipe(v.array(step), v.minLength(1)),
});

/** The checked content of a file. */
export type ScenarioFile = v.InferOutput<typeof scenarioSchema>;
