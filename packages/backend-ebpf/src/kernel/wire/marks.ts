import { UsageError } from '@switchyard/core';

/** Two bits of a packet's mark, by which the wire program tells the guard table what it knows. They are gone before the packet is routed. */
export interface WireMarks {
  /** For a Service: it must not go on without NAT. */
  readonly service: number;
  /** For a Service that refuses it. */
  readonly reject: number;
}

/**
 * Bits that nobody else is known to use: kube-proxy and kubelet have 0x4000 and 0x8000, Cilium 0x0f00, Calico 0xffff0000 unless told
 * otherwise, AWS VPC CNI 0x80.
 */
export const defaultWireMarks: WireMarks = { service: 0x1000, reject: 0x2000 };

/** Throws `UsageError` unless each is one bit, and not the same. */
export function checkMarks({ service, reject }: WireMarks): void {
  const isBit = (mark: number): boolean => mark > 0 && mark <= 0x8000_0000 && Number.isInteger(Math.log2(mark));
  if (isBit(service) && isBit(reject) && service !== reject) return;
  const text = `0x${service.toString(16)} and 0x${reject.toString(16)}`;
  throw new UsageError('ebpf.marks', `cannot use the marks ${text}: each must be one bit of 32, and not the same`);
}
