/**
 * Why iptables failed. `locked`: another process held the lock for the whole wait. `changed`: another process changed the rules at
 * the same time. `permission`: a right is missing. `tables`: the kernel has no such tables, or hides that a right is missing.
 * `rules`: this text is refused.
 */
export type RefusalKind = 'locked' | 'changed' | 'permission' | 'tables' | 'rules';

export interface Refusal {
  readonly kind: RefusalKind;
  /** The first line it named, from 1; COMMIT for each refusal of the kernel in legacy, and mostly in nft 1.8.7. */
  readonly line: number | undefined;
  /** The reason that iptables gave, in one line. */
  readonly said: string;
  /** Advice for the operator; empty when none is known. */
  readonly advice: string;
}

/** Output of `iptables-restore` and `iptables` 1.8.7, 1.8.9 and 1.8.11, both variants, with LC_ALL=C. */
export function parseRefusal(stderr: string): Refusal {
  const line = lineIn(stderr);
  const kind = kindOf(stderr);
  const said = stderr.replaceAll(chatter, '').trim().replaceAll(/\n+/g, ' | ');
  return { kind, line, said, advice: adviceFor(kind, stderr) };
}

/** Output of iptables that carries no reason. */
const chatter = /^(# Warning: .*|Ignoring deprecated .*|Try `.*' for more information\.)$/gm;

const lineForms: readonly RegExp[] = [
  /^line (\d+): /m, // a refusal of the kernel, nft variant
  /\bline (\d+) failed/, // legacy, and what the nft variant finds out itself
  /Error occurred at line: (\d+)/, // the parser's
];

function lineIn(stderr: string): number | undefined {
  for (const form of lineForms) {
    const found = form.exec(stderr)?.[1];
    if (found !== undefined) return Number(found);
  }
  return undefined;
}

const denied = /Permission denied|Operation not permitted|you must be root/;
/** The C library's texts for EAGAIN, EINTR, ERESTART and EBUSY. */
const passing = /Resource temporarily unavailable|Interrupted system call|Device or resource busy/;

function kindOf(stderr: string): RefusalKind {
  if (/holding the xtables lock/.test(stderr)) return 'locked';
  // A refusal of one line by the kernel. Rules lead to a busy chain, and will at the next try: that is no transient failure.
  const ofLine = /^line \d+: (\S+) failed \((.*?)\)/m.exec(stderr);
  if (ofLine !== null) {
    const [, command = '', reason = ''] = ofLine;
    return passing.test(reason) && !/^CHAIN_(USER_)?DEL$/.test(command) ? 'changed' : 'rules';
  }
  if (denied.test(stderr)) return 'permission';
  if (passing.test(stderr)) return 'changed';
  if (/unable to initialize table|can't initialize|[Ff]ailed to initialize nft|generation id|lock file/i.test(stderr))
    return 'tables';
  return 'rules';
}

function adviceFor(kind: RefusalKind, stderr: string): string {
  switch (kind) {
    case 'permission':
      return 'run with CAP_NET_ADMIN, for the legacy variant with CAP_NET_RAW too';
    case 'tables':
      return /lock file/.test(stderr)
        ? 'mount /run/xtables.lock of the host so that it can be written'
        : 'the legacy variant needs CAP_NET_RAW and the module iptable_nat (ip6table_nat), the nft variant nft_compat';
    case 'rules': {
      const extension = /Extension (\S+) revision \d+ not supported/.exec(stderr)?.[1];
      return extension === undefined ? '' : `the kernel lacks the module for ${extension} (xt_${extension})`;
    }
    default:
      return '';
  }
}
