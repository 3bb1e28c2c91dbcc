import { assertNever, maxInterfaceNameLength, type PodDetector, type SourceClass } from '@switchyard/core';

/** A condition on the sender, in the three places of a rule where iptables prints such conditions. Empty: none. */
export interface SourceMatch {
  /** Before the destination: `-s 10.244.0.0/16`. */
  readonly address: string;
  /** Behind the destination: `-i cni0`. */
  readonly incoming: string;
  /** Behind the comment: `-m addrtype --src-type LOCAL`. */
  readonly type: string;
}

const any: SourceMatch = { address: '', incoming: '', type: '' };
const node: SourceMatch = { ...any, type: '-m addrtype --src-type LOCAL' };
const notNode = '-m addrtype ! --src-type LOCAL';

/** Matches the senders of a class. Rules must match pods before the node, because a pod of this node may match both. */
export function matchOf(source: Exclude<SourceClass, 'outside'>, detector: PodDetector): SourceMatch {
  return source === 'node' ? node : podMatch(detector, '');
}

/** Matches that together hold for senders of `classes`. Without a pod detector no sender is a pod. */
export function matchesOf(classes: ReadonlySet<SourceClass>, detector: PodDetector): readonly SourceMatch[] {
  const knowsPods = detector.kind !== 'none';
  const pods = knowsPods && classes.has('pod');
  if (classes.has('node') && classes.has('outside') && (pods || !knowsPods)) return [any];
  const rest = knowsPods ? podMatch(detector, '! ') : any;
  const others = (): readonly SourceMatch[] => {
    if (classes.has('node')) return [classes.has('outside') ? rest : { ...rest, type: node.type }];
    return classes.has('outside') ? [{ ...rest, type: notNode }] : [];
  };
  return [...(pods ? [podMatch(detector, '')] : []), ...others()];
}

function podMatch(detector: PodDetector, negation: '' | '! '): SourceMatch {
  switch (detector.kind) {
    case 'none':
      return any;
    case 'cidr':
      return { ...any, address: `${negation}-s ${detector.cidr}` };
    case 'interface':
      return { ...any, incoming: `${negation}-i ${detector.name}` };
    case 'interfacePrefix':
      return { ...any, incoming: `${negation}-i ${prefixPattern(detector.prefix)}` };
    default:
      return assertNever(detector);
  }
}

/** A prefix as long as names can be is a name; iptables has no room for a `+` behind it. */
function prefixPattern(prefix: string): string {
  return Buffer.byteLength(prefix) < maxInterfaceNameLength ? `${prefix}+` : prefix;
}
