/** The iptables tables we write to. */
export const tableNames = ['nat', 'filter', 'mangle'] as const;

/** One of them. */
export type TableName = (typeof tableNames)[number];

/**
 * A rule in the spelling of `iptables-save`, without `-A CHAIN `: matches in the order in which it prints them, numbers as the
 * kernel rounds them. So what was written and what is read back are compared as text.
 */
export type RuleText = string;

/** One chain of ours with everything in it. */
export interface Chain {
  readonly table: TableName;
  readonly name: string;
  readonly rules: readonly RuleText[];
}

/** One rule in a chain that many Services share, or that is the kernel's. */
export interface ChainRule {
  readonly table: TableName;
  readonly chain: string;
  readonly rule: RuleText;
}

/** What one Service port needs, in the order in which it is written: a chain stands behind those it jumps to. */
export interface RenderedService {
  /** KUBE-SEP, KUBE-SVC, KUBE-SVL, KUBE-EXT, KUBE-FW: this Service port's alone. */
  readonly chains: readonly Chain[];
  /**
   * What leads to them, and what rejects or drops. Those of one chain keep their order (a counter stands before the rule that
   * ends the way); their place among those of other Services does not matter.
   */
  readonly entries: readonly ChainRule[];
}

/** A rule in a chain that is not ours alone. `first`: before all that are there when it is written. */
export type PlacedRule = ChainRule & { readonly place: 'first' | 'last' };

/** What does not depend on single Services. */
export interface RenderedSettings {
  /** Chains that we write whole, such as KUBE-POSTROUTING and KUBE-FORWARD. */
  readonly chains: readonly Chain[];
  /** Chains of entries: what stands behind all entries of Services, often nothing. */
  readonly shared: readonly Chain[];
  /** Rules in the kernel's chains (PREROUTING ...) that lead to ours, in the order in which they are written. */
  readonly jumps: readonly PlacedRule[];
  /**
   * What the kubelet makes as well, by the same names and texts: made where it is missing, never emptied or removed, not even by
   * a cleanup. Written behind `jumps`.
   */
  readonly ensured: {
    readonly chains: readonly { readonly table: TableName; readonly name: string }[];
    readonly rules: readonly PlacedRule[];
  };
}
