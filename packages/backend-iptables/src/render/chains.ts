/** The iptables tables that the agent writes to. */
export const tableNames = ['nat', 'filter', 'mangle'] as const;

export type TableName = (typeof tableNames)[number];

/** A rule as `iptables-save` prints it, without `-A CHAIN `: written and read rules are compared as text. */
export type RuleText = string;

/** One of the agent's chains with all its rules. */
export interface Chain {
  readonly table: TableName;
  readonly name: string;
  readonly rules: readonly RuleText[];
}

/** One rule in a chain that many Services share, or in a kernel chain. */
export interface ChainRule {
  readonly table: TableName;
  readonly chain: string;
  readonly rule: RuleText;
}

/** Chains and entries of one Service port in writing order: a chain stands behind the chains that it jumps to. */
export interface RenderedService {
  /** KUBE-SEP, KUBE-SVC, KUBE-SVL, KUBE-EXT and KUBE-FW chains that belong to this Service port alone. */
  readonly chains: readonly Chain[];
  /** Rules that lead to these chains, reject or drop. Entries of one chain keep their order. */
  readonly entries: readonly ChainRule[];
}

/** A rule in a chain that other programs use too. `first`: before all rules present when it is written. */
export type PlacedRule = ChainRule & { readonly place: 'first' | 'last' };

/** Rules that do not depend on single Services. */
export interface RenderedSettings {
  /** Chains that are written whole, such as KUBE-POSTROUTING and KUBE-FORWARD. */
  readonly chains: readonly Chain[];
  /** Chains of entries with their last rules, which stand behind all entries of Services; often empty. */
  readonly shared: readonly Chain[];
  /** Rules in the kernel's chains (PREROUTING ...) that lead to the agent's, in the order in which they are written. */
  readonly jumps: readonly PlacedRule[];
  /** Chains that the kubelet makes too: made where missing, never emptied or removed. Written after `jumps`. */
  readonly ensured: {
    readonly chains: readonly { readonly table: TableName; readonly name: string }[];
    readonly rules: readonly PlacedRule[];
  };
}
