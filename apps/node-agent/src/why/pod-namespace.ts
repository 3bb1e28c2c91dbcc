import { HostError, type IpAddress } from '@switchyard/core';
import { listNamespaces } from '@switchyard/drops';

/** Path of the network namespace that has an address. Throws `HostError` if no visible process is in such a namespace. */
export function namespaceOf(address: IpAddress): string {
  const found = listNamespaces().find(({ addresses }) => addresses.has(address));
  if (found !== undefined) return `${found.folder}/ns/net`;
  throw new HostError(
    'why.namespace',
    `no process on this node has the address ${address}: ask the node of that pod, and run the agent with hostPID and CAP_SYS_PTRACE`,
  );
}
