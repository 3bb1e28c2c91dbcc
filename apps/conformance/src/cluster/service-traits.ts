import { ApiServerError, type IpFamily } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import type { Caller } from './traffic-caller.ts';

/** Families that Services of this cluster can have: those that the API server gives to a Service that prefers both. */
export async function serviceFamilies(
  { api, namespace }: Caller,
  families: readonly IpFamily[],
  signal: AbortSignal,
): Promise<readonly IpFamily[]> {
  const service = {
    metadata: { name: 'families', namespace },
    spec: { ipFamilyPolicy: 'PreferDualStack', ports: [{ port: 80 }] },
  };
  const { spec } = await api.tryCreate(apiResources.services, service, signal);
  return families.filter((family) => spec?.ipFamilies?.includes(family) === true);
}

/** Whether Services may have external IPs: admission plug-ins such as `DenyServiceExternalIPs` refuse them. */
export async function acceptsExternalIps({ api, namespace }: Caller, signal: AbortSignal): Promise<boolean> {
  const service = {
    metadata: { name: 'external', namespace },
    spec: { externalIPs: ['203.0.113.1'], ports: [{ port: 80 }] },
  };
  try {
    await api.tryCreate(apiResources.services, service, signal);
    return true;
  } catch (error) {
    if (error instanceof ApiServerError && error.status !== undefined) return false;
    throw error;
  }
}
