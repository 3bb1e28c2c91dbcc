import type { KernelFiles } from '@switchyard/host';

/** Default ports of kube-proxy for health and metrics. */
const ports = [10_256, 10_249];
const listening = '0A';

/** Returns the first default port of kube-proxy that is in use in this network namespace; undefined if none is. */
export function kubeProxyPort(files: KernelFiles): number | undefined {
  const taken = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) => listeningPorts(files.read(path) ?? '')));
  return ports.find((port) => taken.has(port));
}

/** Lines such as `0: 0100007F:2809 00000000:0000 0A ...`: local address and port in hexadecimal, then the remote's, then the state. */
function listeningPorts(table: string): readonly number[] {
  return [...table.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /gm)]
    .filter(([, , state]) => state === listening)
    .map(([, port = '']) => Number.parseInt(port, 16));
}
