/** Reasons why a mutant may survive, by its id: its packets are like the original's, which begins with `equivalent`, or what the suite would need. */
export const survivors: ReadonlyMap<string, string> = new Map([
  [
    'core/etp-leftover-counts',
    'equivalent for packets: the external policy decides about external frontends alone, and such a Service has none. What changes is what `explain` and the table say.',
  ],
  [
    'core/other-proxy-ignored',
    'equivalent over an API server: the agent asks it for Services without that label in the first place. What is mutated is for manifests in files, which unit tests look at.',
  ],
  [
    'core/udp-flows-before-endpoints-kept',
    'equivalent where it can be tried: a datagram to a Service without endpoints is refused before conntrack keeps its flow, so that none is left when endpoints come.',
  ],
  [
    'core/engine-changes-lost',
    'it needs changes of several Services within the milliseconds before a write, and a look at all of them without a restart. No case does that; unit tests of the reconciler do.',
  ],
  [
    'iptables/entries-appended-first',
    'equivalent for packets: the order counts only where two entries of one Service match one packet, and that is where the first one only counts (nfacct).',
  ],
  [
    'ebpf/emptied-set-stays',
    'equivalent once a change is written: the frontends refuse before the set is used. The empty set is for a program that read a frontend a microsecond before; tests of the maps put a read there.',
  ],
  [
    'ebpf/stale-generation',
    'the generation is for a program that reads a record while it is given away, and for clients that remember an endpoint whose record another one of the same Service got; they move to an endpoint that serves either way. Tests of the maps put reads there.',
  ],
]);

/** Whether the mutant sends the same packets as the original, so that no suite can notice it. */
export function isEquivalent(id: string): boolean {
  return survivors.get(id)?.startsWith('equivalent ') === true;
}
