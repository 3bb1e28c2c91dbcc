import { flagText } from '../documents.ts';
import { type Field, fieldAt, type Meaning } from '../schema/field.ts';
import { kubeProxySchema } from '../schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../schema/switchyard-fields.ts';
import type { Flag } from './flag.ts';

const same: Meaning = { kind: 'same' };

/** The field a flag sets; of two, that of the iptables mode, which is meant where none is said. Undefined for commands. */
export function fieldOf({ target }: Pick<Flag, 'target'>): Field | undefined {
  switch (target.kind) {
    case 'field':
      return fieldAt(kubeProxySchema, target.path);
    case 'fieldOfMode':
      return fieldAt(kubeProxySchema, target.other);
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

/** The default of a field as a flag would be given; empty for nothing. */
export function defaultText({ path, type, default: value }: Field): string {
  return path === 'nftables.minSyncPeriod' ? '' : flagText(type, value);
}
