/** A feature without a counterpart in kube-proxy. */
export interface OwnRow {
  /** Markdown. */
  readonly what: string;
  /** Markdown. */
  readonly how: string;
}

/** Features that no release of kube-proxy has. Each is off, additional, or reached by a name of its own. */
export const ownRows: readonly OwnRow[] = [
  {
    what: '`/debug/forwarding`, `/debug/explain`, `/debug/changes`, `/debug/losses`, `/debug/why`, `/debug/status`, `/debug/dump`',
    how: 'the applied rules in words, the fate of a packet, and lost packets with their causes ([debugging](../operate/debug.md))',
  },
  {
    what: '`/drain/node`, `/drain/connections` on the health port, and the command `drain-gate`',
    how: 'with `--switchyard-drain-gate`: whether a pod can be stopped without a lost request ([drain gate](../operate/drain-gate.md))',
  },
  {
    what: 'ebpf mode',
    how: "answers of the nftables mode, except for [the limits of sockets](../operate/install.md#what-the-ebpf-mode-does-not-do). `mode: ebpf` is the only value in kube-proxy's file that kube-proxy refuses; the mode reads the `nftables` stanza",
  },
  {
    what: 'age of the rules',
    how: 'in the kernel, readable without the agent ([how](../operate/upgrade.md#how-old-are-the-rules)); the next start reports it',
  },
  {
    what: '`ipMode: Router` (KEP-6272, a draft)',
    how: 'behind the gate `SwitchyardLoadBalancerIPModeRouter`, off by default: without an endpoint on this node the route decides',
  },
  {
    what: '`--switchyard-*`, `SwitchyardConfiguration`, `switchyard_*`',
    how: 'settings and metrics without a name in kube-proxy: [flags](flags.md#switchyard), [fields](config.md#switchyardconfiguration), [metrics](metrics.md#ours)',
  },
];
