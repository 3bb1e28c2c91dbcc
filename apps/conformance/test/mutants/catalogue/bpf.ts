import { type Mutant, mutantsOf } from '../mutant.ts';

const of = (file: string, rows: Parameters<typeof mutantsOf>[2]): readonly Mutant[] =>
  mutantsOf('bpf', `packages/backend-ebpf/bpf/${file}`, rows);

/** The BPF programs. The kernel's verifier takes all of these. */
export const bpfMutants: readonly Mutant[] = [
  ...of('select.h', [
    [
      'slot-off-by-one',
      'the slot behind the one that was drawn is taken',
      'ebpf-tc',
      'sy_selection_base(set) + (__u32)(((__u64)random * sy_selection_count(set)) >> 32);',
      'sy_selection_base(set) + 1 + (__u32)(((__u64)random * sy_selection_count(set)) >> 32);',
    ],
    [
      'class-ignored',
      'all senders are decided about alike',
      'ebpf-tc',
      '__u32 action = actions >> (request->class * SY_ACTION_BITS);',
      '__u32 action = actions >> (SY_CLASS_POD * SY_ACTION_BITS);',
    ],
    [
      'affinity-never-expires',
      'clients keep their endpoint for ever',
      'ebpf-tc',
      'if (now > seen && now - seen > seconds * SY_SECOND) return 0;',
      'if (now > seen && now - seen > seconds * SY_SECOND * 1000) return 0;',
    ],
    [
      'session-of-removed-endpoint',
      'a client with a session at a removed endpoint is still sent there',
      'ebpf-tc',
      'if ((SY_STATE_FLAGS(state) & flags) != flags) return 0;',
      '(void)flags;',
    ],
    [
      'guard-drops',
      'ports that a cluster IP does not have are silent instead of refused',
      'ebpf-tc',
      'if (bpf_map_lookup_elem(&frontends, &frontend->key)) return SY_REJECT;',
      'if (bpf_map_lookup_elem(&frontends, &frontend->key)) return SY_DROP;',
    ],
    [
      'empty-set-rejects',
      'no local endpoint answers with an error instead of silence',
      'ebpf-tc',
      'if (action == SY_ACTION_DROP || is_empty) {\n    look->counter = SY_COUNTER(no_local_endpoint);\n    return SY_DROP;',
      'if (action == SY_ACTION_DROP || is_empty) {\n    look->counter = SY_COUNTER(no_local_endpoint);\n    return SY_REJECT;',
    ],
    [
      'node-port-before-address',
      "a NodePort beats an address of the node that is a Service's",
      'ebpf-tc',
      'if (sy_read_frontend(frontend)) return SY_FOUND;\n  const __u32 *flags = bpf_map_lookup_elem(&node_addresses, &frontend->key.address);',
      'const __u32 *flags = bpf_map_lookup_elem(&node_addresses, &frontend->key.address);\n  if (!flags && sy_read_frontend(frontend)) return SY_FOUND;',
    ],
    [
      'source-ranges-ignored',
      'programs at uplinks let everybody use frontends with source ranges',
      'ebpf-tc',
      'return bpf_map_lookup_elem(&source_ranges, &key) != 0;',
      'return bpf_map_lookup_elem(&source_ranges, &key) != 0 || key.service != 0;',
    ],
    [
      'affinity-shared',
      'all clients of a Service share one session',
      'ebpf-tc',
      'look->client.client = request->client;',
      '',
    ],
  ]),
  ...of('socket.bpf.c', [
    [
      'reject-without-error',
      'a socket that must be refused is dropped',
      'ebpf-tc',
      'if (has_set_retval) bpf_set_retval(-ECONNREFUSED);',
      '',
    ],
    [
      'byte-order',
      'sockets are led to ports in the wrong byte order',
      'ebpf-nftables',
      '  context->user_port = port;\n',
      '  context->user_port = __builtin_bswap16(port);\n',
    ],
    [
      'wrong-family',
      'sockets of the other family are served instead of those of this one',
      'ebpf-tc',
      'if ((family == 4) != sy_is_v4(address)) return 0;',
      'if ((family == 4) == sy_is_v4(address)) return 0;',
    ],
    [
      'udp-not-served',
      'only TCP sockets are led to endpoints',
      'ebpf-tc',
      'return context->protocol == IPPROTO_TCP || context->protocol == IPPROTO_UDP;',
      'return context->protocol == IPPROTO_TCP;',
    ],
    [
      'answers-not-shown-as-service',
      'an unconnected UDP socket hears answers from the endpoint instead of the Service',
      'ebpf-tc',
      'struct sy_address address = flow->address;\n  sy_write_peer(context, hook, &address, flow->port);',
      '',
    ],
    [
      'answers-to-callers-led-on',
      'what a UDP server answers to a client whose port is a NodePort goes to the Service of that NodePort',
      'ebpf-nftables',
      'return flow && settings && sy_age(flow) <= settings->udp_sticky_seconds * SY_SECOND;',
      'return flow && settings && sy_age(flow) > settings->udp_sticky_seconds * SY_SECOND;',
    ],
  ]),
  ...of('wire.bpf.c', [
    [
      'not-masqueraded',
      'what programs at uplinks forward keeps its address',
      'ebpf-tc',
      'if (!choice->masquerade && !sy_is_same(&endpoint, source)) return 1;',
      'if (!sy_is_same(&endpoint, source)) return 1;',
    ],
    [
      'reject-mark-missing',
      'what programs at uplinks refuse is silent',
      'ebpf-tc',
      '  case SY_REJECT:\n    skb->mark |= reject_mark;\n    return TC_ACT_UNSPEC;',
      '  case SY_REJECT:\n    return TC_ACT_SHOT;',
    ],
  ]),
  ...of('wire-conntrack.h', [
    [
      'wrong-port',
      'programs at uplinks lead to ports in the wrong byte order',
      'ebpf-tc',
      'bpf_ntohs(translation->port)',
      'translation->port',
    ],
  ]),
  ...of('wire-packet.h', [
    [
      'udp-at-uplinks-missing',
      'datagrams that come in from outside are not forwarded',
      'ebpf-tc',
      'if (packet->protocol == IPPROTO_UDP) return 1;',
      'if (packet->protocol == IPPROTO_UDP) return 0;',
    ],
  ]),
];
