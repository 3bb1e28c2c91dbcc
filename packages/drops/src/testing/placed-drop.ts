import { millis, parseIp } from '@switchyard/core';
import type { PlacedDrop } from '../kernel/drop-counter.ts';
import type { TrackedFlow } from '../kernel/drop-records.ts';
import type { DropPlace } from '../kernel/kernel-functions.ts';

/** Bits of TCP as a record has them. */
export const tcp = { fin: 1, syn: 2, reset: 4, ack: 16, data: 128 } as const;

/** Cookie of the node's network namespace in tests, and of another one. */
export const nodeNetns = 4026531840;
export const podNetns = 4026532500;

/** The parts of a drop a test cares about; `from` and `to` are `IP:port`, IPv6 in brackets. */
export interface DropSpec extends Partial<
  Omit<PlacedDrop, 'source' | 'sourcePort' | 'destination' | 'destinationPort'>
> {
  readonly from?: string;
  readonly to?: string;
}

/** A drop: by default a rule of the node refused the SYN of a pod to 10.96.0.10:80. Without a flow its direction is guessed. */
export function placedDrop({ from = '10.244.9.9:40000', to = '10.96.0.10:80', ...spec }: DropSpec = {}): PlacedDrop {
  const [source, destination] = [placeOf(from), placeOf(to)];
  const protocol = spec.protocol ?? 'TCP';
  return {
    protocol,
    source: source.address,
    sourcePort: source.port,
    destination: destination.address,
    destinationPort: destination.port,
    direction: 'request',
    isDirectionGuessed: spec.flow === undefined,
    tcpFlags: protocol === 'TCP' ? tcp.syn : 0,
    hops: 64,
    flow: undefined,
    netns: nodeNetns,
    reason: 'NETFILTER_DROP',
    length: 60,
    count: 1,
    last: millis(1000),
    stack: [],
    place: { at: 'prerouting', by: 'rule' },
    ...spec,
  };
}

/** A place in the kernel. */
export function place(by: DropPlace['by'], at?: DropPlace['at']): DropPlace {
  return { at, by };
}

/** A tracked flow of the client 10.244.9.9, confirmed and answered unless said otherwise. */
export function tracked(frontend: string, endpoint: string, isConfirmed = true): TrackedFlow {
  const [asked, chosen] = [placeOf(frontend), placeOf(endpoint)];
  return {
    client: parseIp('10.244.9.9'),
    address: asked.address,
    port: asked.port,
    endpoint: chosen.address,
    endpointPort: chosen.port,
    isConfirmed,
    isAnswered: isConfirmed,
  };
}

function placeOf(text: string) {
  const colon = text.lastIndexOf(':');
  return { address: parseIp(text.slice(0, colon).replaceAll(/[[\]]/g, '')), port: Number(text.slice(colon + 1)) };
}
