import { constants } from 'node:os';
import {
  NativeError,
  type NetlinkSocket,
  NLMSG,
  readAttributes,
  readErrno,
  readUint32be,
  receiveAnswers,
} from '@switchyard/native';
import { conntrack } from './flow-messages.ts';

const { EINVAL, ENOENT, EOPNOTSUPP, EPERM } = constants.errno;
const noCtnetlink = 'the kernel needs CONFIG_NF_CT_NETLINK; where it is a module: modprobe nf_conntrack_netlink';
const advice: Readonly<Record<number, string>> = {
  [EPERM]: 'run with CAP_NET_ADMIN',
  [EOPNOTSUPP]: noCtnetlink,
  [EINVAL]: noCtnetlink,
};

/** The error for a request that the kernel refused. */
export function refusal(attempt: string, errno: number): NativeError {
  return new NativeError(attempt, { errno, syscall: 'ctnetlink' }, advice[errno]);
}

/** Entries of all protocols in the socket's namespace, from the answer to `writeGetStatistics`. Throws `NativeError`. */
export function receiveEntries(socket: NetlinkSocket, buffer: Uint8Array): number {
  for (const [{ type, start, end }] of receiveAnswers(socket, buffer)) {
    if (type === NLMSG.ERROR)
      throw refusal('cannot count the entries of the connection tracking', readErrno(buffer, start));
    for (const attribute of readAttributes(buffer, start + 4, end)) {
      if (attribute.type === conntrack.globalEntries) return readUint32be(buffer, attribute.start);
    }
  }
  return 0;
}

/**
 * Number of deletions just sent that found no entry, which counts as success. The kernel has sent all its answers when
 * `send` returns. Throws `NativeError` for any other answer.
 */
export function receiveMissing(socket: NetlinkSocket, buffer: Uint8Array): number {
  let missing = 0;
  for (const [{ type, start }] of receiveAnswers(socket, buffer)) {
    const errno = type === NLMSG.ERROR ? readErrno(buffer, start) : 0;
    if (errno === ENOENT) missing += 1;
    else if (errno !== 0) throw refusal('cannot delete a UDP flow', errno);
  }
  return missing;
}
