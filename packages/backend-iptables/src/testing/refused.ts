/** How iptables says no: at once, while it reads a line, or when the kernel was asked. */
export type RefusalKind =
  /** The words of the line make no rule; `message` is the same in both variants. */
  | 'words'
  /** The line cannot be done with what is there. Only the nft variant says why. */
  | 'line'
  /** As `words`, but without the program's name in front. */
  | 'bare'
  /** As `words`, but without a place; exit code 1. */
  | 'placeless';

/** Thrown by the fake where the real program would end with an error. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Words that make no rule. */
export function badWords(message: string): Refused {
  return new Refused('words', message);
}

/** iptables' texts for what cannot be done. */
export const noSuchChain = 'No chain/target/match by that name.';
export const noSuchRule = 'Bad rule (does a matching rule exist in that chain?).';
export const indexTooBig = 'Index of insertion too big.';
export const chainExists = 'Chain already exists.';
