/** A value that a rule requires, or excludes (`!`). */
export interface Wanted<T> {
  readonly value: T;
  readonly isNegated: boolean;
}

/** What `-m` adds to a rule. */
export type Match =
  | { readonly kind: 'comment'; readonly text: string }
  | {
      readonly kind: 'tcp' | 'udp' | 'sctp';
      readonly sourcePort: Wanted<string> | undefined;
      readonly destinationPort: Wanted<string> | undefined;
    }
  | { readonly kind: 'mark'; readonly mark: Wanted<MaskedMark> }
  /** States in the order in which iptables prints them. */
  | { readonly kind: 'conntrack'; readonly states: Wanted<readonly string[]> }
  | {
      readonly kind: 'addrtype';
      readonly source: Wanted<string> | undefined;
      readonly destination: Wanted<string> | undefined;
    }
  /** `probability` in parts of 2^31, as the kernel has it. */
  | { readonly kind: 'statistic'; readonly probability: number }
  | RecentMatch
  | { readonly kind: 'nfacct'; readonly name: string };

/** `-m recent` by source address. */
export interface RecentMatch {
  readonly kind: 'recent';
  readonly action: Wanted<'set' | 'rcheck'>;
  readonly seconds: number | undefined;
  readonly reap: boolean;
  readonly name: string;
}

/** A mark and the bits of it that count. */
export interface MaskedMark {
  readonly value: number;
  readonly mask: number;
}

/** Effect on a packet that matches. */
export type Target =
  | { readonly kind: 'ACCEPT' | 'DROP' | 'RETURN' }
  | { readonly kind: 'chain'; readonly chain: string; readonly isGoto: boolean }
  | { readonly kind: 'REJECT'; readonly with: string }
  | { readonly kind: 'MARK'; readonly mark: MaskedMark }
  | { readonly kind: 'MASQUERADE'; readonly options: readonly string[] }
  | { readonly kind: 'DNAT'; readonly destination: string };

/** A rule that iptables understood. */
export interface FakeRule {
  /** As `iptables-save` prints it, without `-A CHAIN `. */
  readonly text: string;
  readonly source: Wanted<string> | undefined;
  readonly destination: Wanted<string> | undefined;
  readonly inInterface: Wanted<string> | undefined;
  readonly outInterface: Wanted<string> | undefined;
  readonly protocol: Wanted<string> | undefined;
  readonly matches: readonly Match[];
  /** Undefined: the rule only counts. */
  readonly target: Target | undefined;
}

/** Names of conntrack's packet states, in the order in which iptables prints them. */
export const conntrackStates: readonly string[] = [
  'INVALID',
  'NEW',
  'RELATED',
  'ESTABLISHED',
  'UNTRACKED',
  'SNAT',
  'DNAT',
];
