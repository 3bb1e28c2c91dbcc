import { UsageError } from '@switchyard/core';

/** Two bits of a packet's mark with which the wire program informs the guard table. They are cleared before the packet is routed. */
export interface WireMarks {
  /** Packet for a Service: it must not pass without NAT. */
  readonly service: number;
  /** Packet for a Service that refuses it. */
  readonly reject: number;
}

/**
 * Bits without a known other user: kube-proxy and kubelet use 0x4000 and 0x8000, Cilium 0x0f00, Calico 0xffff0000 by default, AWS VPC
 * CNI 0x80.
 */
export const defaultWireMarks: WireMarks = { service: 0x1000, reject: 0x2000 };

/** Throws `UsageError` unless each is one bit and they differ. */
export function checkMarks({ service, reject }: WireMarks): void {
  const isBit = (mark: number): boolean => mark > 0 && mark <= 0x8000_0000 && Number.isInteger(Math.log2(mark));
  if (isBit(service) && isBit(reject) && service !== reject) return;
  const text = `0x${service.toString(16)} and 0x${reject.toString(16)}`;
  throw new UsageError('ebpf.marks', `cannot use the marks ${text}: each must be one bit of 32, and not the same`);
}
