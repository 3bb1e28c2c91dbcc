import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabCluster, type LabNode, startEchoServer } from '@switchyard/lab';

/** A Service with one endpoint, in both families. */
export interface EchoService {
  /** The first of its two. */
  readonly clusterIp: string;
}

/** An echo server in a pod of the node, and the Service `cart` in front of it: port 80, and this NodePort. */
export async function addEchoService(
  cluster: LabCluster,
  { node, nodePort }: { readonly node: LabNode; readonly nodePort: number },
  signal: AbortSignal,
): Promise<EchoService> {
  const pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080] });
  const ports = [{ name: 'http', port: 80, nodePort, protocol: 'TCP' as const }];
  const spec = { type: 'NodePort' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
  const metadata = { name: 'cart', namespace: 'default' };
  const made = await cluster.api.create(apiResources.services, { metadata, spec }, signal);
  for (const addressType of ipFamilies) {
    const labels = { 'kubernetes.io/service-name': 'cart' };
    const slice = {
      metadata: { name: addressType.toLowerCase(), namespace: 'default', labels },
      addressType,
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' as const }],
      endpoints: [{ addresses: [pod.addresses[addressType]!], nodeName: node.nodeName, conditions: { ready: true } }],
    };
    await cluster.api.create(apiResources.endpointSlices, slice, signal);
  }
  return { clusterIp: made.spec?.clusterIP ?? '' };
}
