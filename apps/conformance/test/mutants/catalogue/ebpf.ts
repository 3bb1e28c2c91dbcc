import { type Mutant, mutantsOf } from '../mutant.ts';

const of = (file: string, rows: Parameters<typeof mutantsOf>[2]): readonly Mutant[] =>
  mutantsOf('ebpf', `packages/backend-ebpf/src/${file}`, rows);

/** The eBPF backend: what is written to the maps. */
export const ebpfMutants: readonly Mutant[] = [
  ...of('render/address-words.ts', [
    [
      'byte-order',
      'ports stand in maps in the order of the host',
      'ebpf-tc',
      'return ((port & 0xff) << 8) | (port >>> 8);',
      'return port;',
    ],
  ]),
  ...of('kernel/maps/set-writer.ts', [
    [
      'slot-range-off-by-one',
      'slots are written one behind where programs look',
      'ebpf-tc',
      'slots.set(range.base + index, service,',
      'slots.set(range.base + index + 1, service,',
    ],
    [
      'last-slot-missing',
      'the last endpoint of a set is never picked',
      'ebpf-nftables',
      'else this.#writeSet(id, set, { base, count: length });',
      'else this.#writeSet(id, set, { base, count: Math.max(Math.min(length, 1), length - 1) });',
    ],
    [
      'removed-endpoints-alive',
      'endpoints that a Service no longer has stay alive for those who remember them',
      'ebpf-tc',
      'state.setFlags(id, flags);\n      if (flags === 0)',
      'if (flags !== 0) state.setFlags(id, flags);\n      if (flags === 0)',
    ],
    [
      'stale-set',
      'a set that changes without growing stays as it was',
      'ebpf-tc',
      'if (isSame) return;',
      'if (isSame || (!isNew && length > 0 && length === state.countOf(id, set))) return;',
    ],
    [
      'emptied-set-stays',
      'a set that becomes empty keeps its endpoints',
      'ebpf-nftables',
      'for (const set of emptied) state.select(service, set, { base: 0, count: 0 });',
      '',
    ],
    [
      'stale-generation',
      'an endpoint that takes the place of another has its generation',
      'ebpf-tc',
      'const generation = (before + 1) >>> 0 || 1;',
      'const generation = before || 1;',
    ],
  ]),
  ...of('kernel/maps/apply-run.ts', [
    [
      'guard-missing',
      'ports that a cluster IP does not have are silent instead of refused',
      'ebpf-tc',
      'for (const guard of wanted) frontends.put(key, guardKey(guard, this.#guardKey), { service: noId, rest: 0 });',
      '',
    ],
    [
      'stale-frontends',
      'addresses and ports that a Service no longer has still lead to it',
      'ebpf-tc',
      'if (entries.length > 0) this.#stale.push({ owner: key, service: id, entries });',
      '',
    ],
    [
      'removed-services-stay',
      'Services that are deleted stay in the maps',
      'ebpf-nftables',
      'for (const [placed, service] of this.#removed) this.#removePlaced(placed, service);',
      '',
    ],
    [
      'udp-sockets-kept',
      'connected UDP sockets of removed endpoints are kept',
      'ebpf-tc',
      'if (!isUdp) return;',
      'if (isUdp || !isUdp) return;',
    ],
  ]),
  ...of('render/render-service.ts', [
    [
      'local-is-cluster',
      'what goes to local endpoints is led to those of all nodes',
      'ebpf-tc',
      'Local: actions.local } as const;',
      'Local: actions.cluster } as const;',
    ],
    [
      'affinity-not-kept',
      'session affinity is not in the maps',
      'ebpf-tc',
      "affinitySeconds: sessionAffinity.kind === 'none' ? 0 : affinitySeconds(sessionAffinity.timeout),",
      "affinitySeconds: sessionAffinity.kind === 'none' ? 0 : affinitySeconds(sessionAffinity.timeout) * 0,",
    ],
    [
      'classes-swapped',
      'pods and the node are decided about as each other',
      'ebpf-tc',
      'bits |= actionOf(decisions[source]) << (sourceClassIndex[source] * actionBits);',
      "bits |= actionOf(decisions[source === 'pod' ? 'node' : source === 'node' ? 'pod' : source]) << (sourceClassIndex[source] * actionBits);",
    ],
  ]),
  ...of('render/settings/configuration.ts', [
    [
      'sockets-of-pods-are-outside',
      'sockets of pods are decided about as if they were outside, unlike their packets',
      'ebpf-tc',
      'settings.hasPodDetector ? sourceClassIndex.pod : sourceClassIndex.outside',
      'sourceClassIndex.outside',
    ],
    [
      'no-guards',
      'unallocated addresses of the service CIDR are routed on',
      'ebpf-tc',
      "view.setUint8(at('guards'), guards.count);",
      "view.setUint8(at('guards'), 0);",
    ],
  ]),
  ...of('kernel/node-addresses/node-addresses.ts', [
    [
      'node-port-anywhere',
      'NodePorts answer on all local addresses, not only on the selected ones',
      'ebpf-tc',
      'nodePortCidrs.some((cidr) => cidrContains(cidr, ip)) ? nodeAddressFlags.nodePort : 0',
      'nodePortCidrs.length >= 0 ? nodeAddressFlags.nodePort : 0',
    ],
  ]),
  ...of('render/remainder/left-to-rules.ts', [
    [
      'sctp-left-to-nobody',
      'neither programs nor rules carry SCTP',
      'ebpf-tc',
      "service.protocol === 'SCTP' || frontend.allowedSources !== 'any'",
      "frontend.allowedSources !== 'any'",
    ],
    [
      'source-ranges-left-to-nobody',
      'neither programs nor rules carry sockets to frontends with source ranges',
      'ebpf-tc',
      "service.protocol === 'SCTP' || frontend.allowedSources !== 'any'",
      "service.protocol === 'SCTP'",
    ],
  ]),
];
