import { defaultMode } from '../proxy-mode.ts';
import { type Field, fieldAt, type FieldType, type Meaning, same } from '../schema/field.ts';
import { kubeProxySchema } from '../schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../schema/switchyard-fields.ts';

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
  /** The field of this name in the stanza of the mode: kube-proxy has one flag for all modes, its file one field per mode. */
  | { readonly kind: 'fieldOfMode'; readonly name: string }
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

/** The field a flag sets; of one per mode, that of the default mode. Undefined for commands. */
export function fieldOf({ target }: Pick<Flag, 'target'>): Field | undefined {
  switch (target.kind) {
    case 'field':
      return fieldAt(kubeProxySchema, target.path);
    case 'fieldOfMode':
      return fieldAt(kubeProxySchema, `${defaultMode}.${target.name}`);
    case 'own':
      return fieldAt(switchyardSchema, target.path);
    default:
      return undefined;
  }
}

/** A flag means what its field means, unless it says otherwise itself. */
export function meaningOf(flag: Flag): Meaning {
  if (flag.target.kind === 'nothing') return flag.target.meaning;
  return flag.meaning ?? fieldOf(flag)?.meaning ?? same;
}
