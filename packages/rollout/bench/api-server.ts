// The lab's API server in a process of its own: node api-server.ts NAMESPACE SERVICE_CIDR KUBECONFIG
import { writeFileSync } from 'node:fs';
import { parseCidr } from '@switchyard/core';
import { listenInNamespace, startApiServer } from '@switchyard/lab';

/** Message of this process to the bench when it listens. */
export interface ApiServerReady {
  /** On the machine's loopback. */
  readonly url: string;
}

const port = 6443;

const [namespace = '', cidr = '', kubeconfig = '', address = ''] = process.argv.slice(2);
const server = await startApiServer({ serviceCidrs: [parseCidr(cidr)], hasLifecycle: false });
const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
await server.listen(await listenInNamespace({ namespace, host: '0.0.0.0', port }, AbortSignal.timeout(10_000)));
writeFileSync(kubeconfig, server.kubeconfig(`http://${address}:${port}`));
process.on('disconnect', () => process.exit(0)); // the bench has gone
process.send?.({ url } satisfies ApiServerReady);
