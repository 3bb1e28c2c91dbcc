import { type Mutant, mutantsOf } from '../mutant.ts';

const of = (file: string, rows: Parameters<typeof mutantsOf>[2]): readonly Mutant[] =>
  mutantsOf('nftables', `packages/backend-nftables/src/${file}`, rows);

/** The nftables backend: its constant rules and its elements. */
export const nftablesMutants: readonly Mutant[] = [
  ...of('render/skeleton.ts', [
    [
      'cluster-ip-not-masqueraded',
      'senders that are no pods keep their address at cluster IPs',
      'nftables',
      '[isPod, toCluster]), [goTo(`masq-cluster${suffix}`)]],',
      '[isPod, toCluster]), [toCluster]],',
    ],
    [
      'node-port-anywhere',
      'NodePorts answer on all local addresses, not only on the selected ones',
      'nftables',
      "        isTo('nodeport-ips', family),\n",
      '',
    ],
    [
      'node-port-in-transit',
      'NodePorts of other nodes are answered by this one',
      'nftables',
      "        { kind: 'isLocal', address: 'daddr' },\n",
      '',
    ],
    [
      'unknown-port-silent',
      'ports that a cluster IP does not have are silent instead of refused',
      'nftables',
      "...perFamily((family) => [isTo('cluster-ips', family), goTo('reject-chain')]),",
      '',
    ],
    [
      'service-cidr-open',
      'unallocated addresses of the service CIDR are routed on',
      'nftables',
      "...perFamily((family) => [isTo('service-cidrs', family), drop]),",
      '',
    ],
    [
      'pod-interface-ignored',
      'pods detected by their interface are taken for others',
      'nftables',
      "    { kind: 'inSet', fields: ['iifname'], set: `pod-interfaces${suffix}` },\n",
      '',
    ],
    [
      'node-is-outside',
      'what the node sends is decided as if it came from outside',
      'nftables',
      "      [isAsked(nodeBits), { kind: 'isLocal', address: 'saddr' }, keep(nodeBits)],\n",
      '',
    ],
    [
      'address-after-node-port',
      "a NodePort beats an address of the node that is a Service's",
      'nftables',
      "      ...perFamily((family) => find('frontends', tuple(family.ip), family)),\n      ...perFamily((family) => [\n        isTo('nodeport-ips', family),\n        { kind: 'isNot', field: `${family.ip} daddr`, cidr: loopback[family.suffix] },\n        { kind: 'isLocal', address: 'daddr' },\n        ...find('nodeports', ['meta l4proto', 'th dport'], family),\n      ]),\n",
      "      ...perFamily((family) => [\n        isTo('nodeport-ips', family),\n        { kind: 'isNot', field: `${family.ip} daddr`, cidr: loopback[family.suffix] },\n        { kind: 'isLocal', address: 'daddr' },\n        ...find('nodeports', ['meta l4proto', 'th dport'], family),\n      ]),\n      ...perFamily((family) => find('frontends', tuple(family.ip), family)),\n",
    ],
  ]),
  ...of('render/elements.ts', [
    [
      'wrong-verdict-class',
      'Services without endpoints get the verdict of those without local ones',
      'nftables',
      "{ code: codes.reject, chain: 'no-endpoints?' },",
      "{ code: codes.reject, chain: 'no-local?' },",
    ],
    [
      'local-leads-to-cluster',
      'what goes to local endpoints is led to those of all nodes',
      'ebpf-nftables',
      "{ code: codes.local, chain: 'set-local?' },",
      "{ code: codes.local, chain: 'set-cluster?' },",
    ],
    [
      'restriction-lost',
      'frontends with source ranges are not marked as restricted',
      'ebpf-tc',
      "(allowedSources === 'any' ? 0 : restrictedClass)",
      "(allowedSources === 'any' ? 0 : 0)",
    ],
  ]),
  ...of('render/render-service.ts', [
    [
      'last-slot-missing',
      'the last endpoint of a set is never picked',
      'nftables',
      "? { kind: 'lb', slots: count }",
      "? { kind: 'lb', slots: Math.max(1, count - 1) }",
    ],
    [
      'hairpin-not-masqueraded',
      'an endpoint that reaches itself by its Service sees its own address',
      'nftables',
      "for (const id of ids ?? []) elements.push(add(id, ''));",
      '',
    ],
    [
      'map-element-missing',
      'the last frontend of a Service is not written',
      'nftables',
      'for (const frontend of service.frontends) {\n    const handle',
      'for (const frontend of service.frontends.length > 1 ? service.frontends.slice(0, -1) : service.frontends) {\n    const handle',
    ],
    [
      'stale-slots',
      'slots keep the endpoints that they had when a set changes without growing',
      'nftables',
      'if (isSamePlace(old, now)) continue;',
      'if (old !== undefined && now !== undefined) continue;',
    ],
    [
      'removed-elements-stay',
      'elements that a Service no longer has stay',
      'nftables',
      "for (const id of had.keys()) changes.push({ kind: 'delete', id });",
      '',
    ],
  ]),
  ...of('kernel/netlink/encode-class.ts', [
    [
      'affinity-not-kept',
      'session affinity lasts a millisecond',
      'nftables',
      'const timeout = this.#which.timeoutSeconds * 1000;',
      'const timeout = 1;',
    ],
    [
      'affinity-never-expires',
      'session affinity lasts a thousand times as long',
      'nftables',
      'const timeout = this.#which.timeoutSeconds * 1000;',
      'const timeout = this.#which.timeoutSeconds * 1_000_000;',
    ],
  ]),
  ...mutantsOf('nftables', 'packages/netfilter/src/nftables/expressions.ts', [
    [
      'affinity-by-destination',
      'all clients of a Service share one session',
      'nftables',
      'isIpv6 ? { base: 1, offset: 8, length: 16 } : { base: 1, offset: 12, length: 4 }',
      'isIpv6 ? { base: 1, offset: 24, length: 16 } : { base: 1, offset: 16, length: 4 }',
    ],
  ]),
  ...of('kernel/driver.ts', [
    [
      'restart-flushes',
      'a start removes all rules before it writes them again',
      'nftables',
      'const { table, others, isNew } = await ensureTable({ transport, names }, signal);',
      'for (const one of names) await removeFamily(transport, one, ipFamily, signal);\n    const { table, others, isNew } = await ensureTable({ transport, names }, signal);',
    ],
    [
      'restart-forgets',
      'Services that went while the agent was down stay',
      'nftables',
      'staleElementGroups(found, this.#classes, changesPerTransaction)',
      'staleElementGroups(found.slice(0, 0), this.#classes, changesPerTransaction)',
    ],
  ]),
  ...of('backend.ts', [
    [
      'cleanup-at-exit',
      'the agent takes its rules away when it ends',
      'nftables',
      'await this.#transport[Symbol.asyncDispose](); // forwarding stays',
      'await this.cleanup(AbortSignal.timeout(2000)).catch(() => undefined);\n    await this.#transport[Symbol.asyncDispose]();',
    ],
  ]),
];
