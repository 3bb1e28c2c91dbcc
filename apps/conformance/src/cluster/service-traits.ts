import type { V1Service } from '@kubernetes/client-node';
import type { IpFamily } from '@switchyard/core';
import type { Caller } from './traffic-caller.ts';

/** Families that Services of this cluster can have: the API server says it of one that would take both. */
export async function serviceFamilies(
  { api, namespace }: Caller,
  families: readonly IpFamily[],
  signal: AbortSignal,
): Promise<readonly IpFamily[]> {
  const path = `/api/v1/namespaces/${namespace}/services`;
  const { spec } = await api.create<V1Service>(
    `${path}?dryRun=All`,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'families', namespace },
      spec: { ipFamilyPolicy: 'PreferDualStack', ports: [{ port: 80 }] },
    },
    signal,
  );
  return families.filter((family) => spec?.ipFamilies?.includes(family) === true);
}

/** Whether Services may have external IPs: admission plug-ins such as `DenyServiceExternalIPs` refuse them. */
export async function acceptsExternalIps({ api, namespace }: Caller, signal: AbortSignal): Promise<boolean> {
  const body: V1Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'external', namespace },
    spec: { externalIPs: ['203.0.113.1'], ports: [{ port: 80 }] },
  };
  const path = `/api/v1/namespaces/${namespace}/services?dryRun=All`;
  return (await api.send({ method: 'POST', path, body }, signal)).status < 300;
}
