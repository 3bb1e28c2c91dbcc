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
  | { readonly kind: 'field'; readonly path: string }
  /** The field of this name in the stanza of the mode: kube-proxy has one flag for all modes, its file one field per mode. */
  | { readonly kind: 'fieldOfMode'; readonly name: string }
  | { readonly kind: 'own'; readonly path: string }
  /** Selects what the process does, or how it reads its configuration. */
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
  /** Also counts with `--config`, and takes precedence over the file. All other flags of kube-proxy are then ignored. */
  readonly isKeptWithFile: boolean;
  /** Placeholder of the value in the help; undefined for switches. */
  readonly value?: string;
  /** One sentence without a full stop. */
  readonly help: string;
  /** Value of the flag without `=value`, if that is allowed. */
  readonly bare?: string;
  readonly deprecated?: string;
  /** Difference from kube-proxy, if it is not that of the field. */
  readonly meaning?: Meaning;
}

/** Returns the field that a flag sets; if there is one per mode, that of the default mode. Undefined for commands. */
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

/** Returns the meaning of a flag: its own, or that of its field. */
export function meaningOf(flag: Flag): Meaning {
  if (flag.target.kind === 'nothing') return flag.target.meaning;
  return flag.meaning ?? fieldOf(flag)?.meaning ?? same;
}
