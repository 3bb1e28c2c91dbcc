import type { FieldType, Meaning } from '../schema/field.ts';

/** Headings of the help, in its order. */
export const flagGroups = [
  'Configuration files and what to do',
  'Logging',
  'API server',
  'Servers',
  'Mode',
  'Traffic',
  'Kernel',
  'Inherited',
  'Switchyard',
] as const;

/** One heading of the help. */
export type FlagGroup = (typeof flagGroups)[number];

/** Where a flag's value goes. */
export type FlagTarget =
  /** A field of kube-proxy's configuration. */
  | { readonly kind: 'field'; readonly path: string }
  /** One of two fields: kube-proxy has one value for all modes, its file one per mode. The ebpf mode reads that of nftables. */
  | { readonly kind: 'fieldOfMode'; readonly nftables: string; readonly other: string }
  /** A field of our own configuration. */
  | { readonly kind: 'own'; readonly path: string }
  /** What the process is to do, or how it reads its configuration. */
  | { readonly kind: 'command' }
  /** Accepted, without effect. */
  | { readonly kind: 'nothing'; readonly meaning: Meaning };

/** One command line flag. */
export interface Flag {
  readonly name: string;
  readonly group: FlagGroup;
  /** How the value is written. Switches (`boolean`) may stand alone. */
  readonly type: FieldType;
  readonly target: FlagTarget;
  /** Also counts beside `--config`: it wins over the file. All others of kube-proxy's are then ignored. */
  readonly isKeptWithFile: boolean;
  /** What stands for the value in the help; nothing for switches. */
  readonly value?: string;
  /** One sentence without a full stop. */
  readonly help: string;
  /** What a bare `--flag` means, where it may stand alone. */
  readonly bare?: string;
  /** What to use instead. */
  readonly deprecated?: string;
  /** Next to kube-proxy's, where its field does not say so. */
  readonly meaning?: Meaning;
}
