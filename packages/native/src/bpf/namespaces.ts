import { NativeError } from '../native-error.ts';
import { isLittleEndian } from '../netlink/byte-order.ts';
import { loadBpfAddon } from './bpf-addon.ts';

/** The kernel's number of a network namespace, as programs see it (Linux 5.14). Default: the process's own. Throws `NativeError`. */
export function netnsCookie(path?: string): bigint {
  const bytes = new Uint8Array(8);
  const result = loadBpfAddon().netnsCookie(path ?? '', bytes);
  if (result === 0) return new DataView(bytes.buffer).getBigUint64(0, isLittleEndian);
  const attempt = `cannot read the cookie of the network namespace ${path ?? 'of this process'}`;
  throw new NativeError(attempt, { errno: -result, syscall: 'getsockopt SO_NETNS_COOKIE' });
}
