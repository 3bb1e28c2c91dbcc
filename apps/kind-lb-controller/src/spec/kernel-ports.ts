import type { LoadBalancerSpec, PortSpec } from './load-balancer-spec.ts';

/** Whether HAProxy carries the traffic of a port: TCP in path `proxy`. The kernel has the others. */
export function isProxied(spec: LoadBalancerSpec, port: PortSpec): boolean {
  return spec.path === 'proxy' && port.protocol === 'TCP';
}

/** Whether the kernel has any traffic of it, so that its rules depend on the health of targets. */
export function needsKernel(spec: LoadBalancerSpec): boolean {
  return spec.ports.some((port) => !isProxied(spec, port));
}
