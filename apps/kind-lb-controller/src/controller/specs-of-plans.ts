import { ipFamilyOf, parsePort, type ServiceKey } from '@switchyard/core';
import type { LoadBalancerNode } from '../cluster/cluster-objects.ts';
import type { ServedService, ServicePlan } from '../plan/plan.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { LoadBalancerId, LoadBalancerSpec, Target } from '../spec/load-balancer-spec.ts';

/** The one cluster there is. */
export const clusterName = 'cluster';

/** Which load balancer a Service's is. */
export function idOf(service: ServiceKey): LoadBalancerId {
  return { cluster: clusterName, service };
}

/** What the runtime is to run for plans: one load balancer for each Service that is served. */
export function specsOfPlans(
  plans: readonly ServicePlan[],
  nodes: readonly LoadBalancerNode[],
  profile: HealthProfile,
): readonly LoadBalancerSpec[] {
  const usable = nodes.filter(({ isUsable }) => isUsable).sort((a, b) => (a.name < b.name ? -1 : 1));
  return plans.flatMap(({ served, grant }) => {
    if (served === undefined) return [];
    const { record, binds } = served;
    const ports = [...Map.groupBy(binds, ({ port }) => port.port)].map(([port, those]) => ({
      port,
      protocol: 'TCP' as const,
      addresses: those.map(({ address }) => address),
      targets: those.flatMap(({ address, port: { nodePort } }) =>
        targetsOf(usable, ipFamilyOf(address), { served, nodePort, profile }),
      ),
    }));
    const { key, loadBalancerSourceRanges: sourceRanges, sessionAffinity } = record;
    return [
      {
        id: idOf(key),
        addresses: grant,
        path: 'proxy',
        ports: ports.sort((a, b) => a.port - b.port),
        sourceRanges,
        sessionAffinity,
        proxyProtocol: 'none',
        isWeighted: false,
        profile,
        routes: [],
      },
    ];
  });
}

function targetsOf(
  nodes: readonly LoadBalancerNode[],
  family: 'IPv4' | 'IPv6',
  how: {
    readonly served: ServedService;
    readonly nodePort: number | undefined;
    readonly profile: HealthProfile;
  },
): readonly Target[] {
  const { externalTrafficPolicy, healthCheckNodePort } = how.served.record;
  const checkPort = (externalTrafficPolicy === 'Local' ? healthCheckNodePort : undefined) ?? how.profile.clusterPort;
  return nodes.flatMap(({ name, addresses }) => {
    const address = addresses.find((ip) => ipFamilyOf(ip) === family);
    if (address === undefined || how.nodePort === undefined) return [];
    const check = { address, port: checkPort, path: '/healthz' };
    return [{ name, node: name, address, port: parsePort(how.nodePort), check, isDraining: false }];
  });
}
