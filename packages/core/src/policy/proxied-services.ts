import { type IpAddress, type IpFamily, ipFamilyOf } from '../ip/address.ts';
import type { ServiceRecord } from '../records/service.ts';

/** Why a Service is not ours to forward in one IP family. */
export type NotProxiedReason = 'externalName' | 'headless' | 'otherProxy' | 'noClusterIp';

/** Whether this node forwards a Service in one family, and by which cluster IP. */
export type ProxiedService =
  | { readonly status: 'proxied'; readonly clusterIp: IpAddress }
  | { readonly status: 'skipped'; readonly reason: NotProxiedReason };

/**
 * Whether a Service is ours. ExternalName is skipped even if a cluster IP lingers; the label
 * `service.kubernetes.io/service-proxy-name` with any value hands the Service to another proxy; a
 * Service without a cluster IP of this family does not exist in this family, whatever other
 * addresses of the family it names.
 */
export function proxiedService(service: ServiceRecord, ipFamily: IpFamily): ProxiedService {
  if (service.type === 'ExternalName') return { status: 'skipped', reason: 'externalName' };
  if (service.isHeadless) return { status: 'skipped', reason: 'headless' };
  if (service.serviceProxyName !== undefined) return { status: 'skipped', reason: 'otherProxy' };
  const clusterIp = service.ipFamilies.includes(ipFamily)
    ? service.clusterIps.find((ip) => ipFamilyOf(ip) === ipFamily)
    : undefined;
  return clusterIp === undefined ? { status: 'skipped', reason: 'noClusterIp' } : { status: 'proxied', clusterIp };
}
