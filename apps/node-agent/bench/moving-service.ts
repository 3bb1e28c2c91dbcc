import { seconds, systemClock } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import { createProber, type LabCluster, type LabNode, startEchoServer } from '@switchyard/lab';

const podPort = 8080;
const name = 'moving';
/** Longest wait for a change, in milliseconds. A longer one is none. */
const timeout = 30_000;

/** A Service whose one endpoint moves between two pods. */
export interface MovingService extends AsyncDisposable {
  /** Moves the endpoint so many times; milliseconds from each acknowledged write to the first answer of the new endpoint, null for none. */
  move(times: number): Promise<readonly (number | null)[]>;
}

/** Creates the Service and waits until the proxy of `node` forwards to it. */
export async function createMovingService(
  { lab, api }: LabCluster,
  node: LabNode,
  signal: AbortSignal,
): Promise<MovingService> {
  const [a, b, client] = await Promise.all(['a', 'b', 'prober'].map((pod) => lab.addPod(node, pod)));
  if (a === undefined || b === undefined || client === undefined) throw new Error('a pod is missing');
  const pods = [a, b] as const;
  for (const pod of pods) startEchoServer(pod, { pod: pod.name, tcp: [podPort] });
  const prober = await createProber(client, signal);
  const metadata = { name, namespace: 'default' };
  const spec = { ports: [{ name: 'http', port: 80, protocol: 'TCP' as const }] };
  const { spec: made } = await api.create(apiResources.services, { metadata, spec }, signal);
  const request = { protocol: 'tcp', address: made?.clusterIP ?? '', port: 80 } as const;
  let at = 0;
  const slice = (): EndpointSlice => ({
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: podPort, protocol: 'TCP' }],
    endpoints: [{ addresses: [pods[at % 2]?.addresses.IPv4 ?? ''], conditions: { ready: true } }],
  });
  const isAnswered = async (): Promise<boolean> => {
    const by = pods[at % 2]?.name ?? '';
    const { result } = await prober.awaitAnswer(request, { by, interval: 5, timeout });
    return result.status === 'answered' && result.by === by;
  };
  await api.create(apiResources.endpointSlices, slice(), signal);
  if (!(await isAnswered())) throw new Error('the proxy does not forward to the first pod');
  return {
    async move(times) {
      const took: (number | null)[] = [];
      for (let count = 0; count < times; count++) {
        at++;
        await api.update(apiResources.endpointSlices, slice(), signal);
        const acknowledged = performance.now();
        took.push((await isAnswered()) ? performance.now() - acknowledged : null);
        await systemClock.sleep(seconds(0.2), signal);
      }
      return took;
    },
    [Symbol.asyncDispose]: () => prober[Symbol.asyncDispose](),
  };
}
