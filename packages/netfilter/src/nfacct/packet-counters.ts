import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  NetlinkAsker,
  type NetlinkOptions,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  openNetlinkSocket,
  readAttributes,
  readErrno,
  readText,
  readUint64be,
  receiveAnswers,
} from '@switchyard/native';

/** Count of one counter of netfilter accounting since it was made. */
export interface PacketCount {
  readonly packets: number;
  readonly bytes: number;
}

/** The named counters that rules use by `-m nfacct` (kernel 3.3), of one network namespace. */
export interface PacketCounters {
  /** Makes sure that there is a counter of this name, of 1 to 31 characters; one that is there keeps its count. Throws `NativeError`. */
  ensure(name: string): void;
  /** All counters. Throws `NativeError`. */
  read(): ReadonlyMap<string, PacketCount>;
  /** Removes a counter; false when there was none, or a rule uses it. Throws `NativeError`. */
  remove(name: string): boolean;
}

/** Network namespace of the counters. */
export interface PacketCounterOptions {
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string | undefined;
  /** For tests; default `openNetlinkSocket`. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
}

/** Numbers of linux/netfilter/nfnetlink_acct.h, as far as they are used here. */
const accounting = {
  subsystem: 7, // NFNL_SUBSYS_ACCT
  new: 0, // NFNL_MSG_ACCT_NEW, and so on
  get: 1,
  delete: 3,
  name: 1, // NFACCT_NAME
  packets: 2,
  bytes: 3,
} as const;

/** The kernel keeps 32 bytes for a name, a NUL among them. */
const maxNameLength = 31;
const { EBUSY, EEXIST, EINVAL, ENOENT, EPERM } = constants.errno;

/** Opens nothing yet: each call has a socket of its own. */
export function createPacketCounters({ netns, open = openNetlinkSocket }: PacketCounterOptions = {}): PacketCounters {
  const connect = (): NetlinkSocket => open({ protocol: 'netfilter', netns });
  return {
    ensure: (name) => {
      if (name === '' || name.length > maxNameLength) {
        throw new UsageError('nfacct.name', `'${name}' cannot name a counter: 1 to ${maxNameLength} characters can`);
      }
      // EEXIST where there is one.
      const errno = ask(connect, request(accounting.new, NLM_F.ACK | NLM_F.CREATE | NLM_F.EXCL, name));
      if (errno !== 0 && errno !== EEXIST) throw refusal(`cannot make the packet counter ${name}`, errno);
    },
    remove: (name) => {
      // EBUSY while a rule uses it, ENOENT where there is none.
      const errno = ask(connect, request(accounting.delete, NLM_F.ACK, name));
      if (errno === 0) return true;
      if (errno === ENOENT || errno === EBUSY) return false;
      throw refusal(`cannot remove the packet counter ${name}`, errno);
    },
    read: () => readAll(connect),
  };
}

function request(type: number, flags: number, name: string): Uint8Array {
  const writer = new MessageWriter();
  writer.beginMessage({ type: (accounting.subsystem << 8) | type, flags: NLM_F.REQUEST | flags, sequence: 1 });
  writer.netfilterHeader(0, 0);
  writer.attributeText(accounting.name, name);
  writer.endMessage();
  return writer.bytes();
}

/** The kernel has answered when `send` returns. */
function ask(connect: () => NetlinkSocket, message: Uint8Array): number {
  using socket = connect();
  socket.send(message);
  for (const [{ type, start }, bytes] of receiveAnswers(socket)) {
    if (type === NLMSG.ERROR) return readErrno(bytes, start);
  }
  return EINVAL; // the kernel always answers a request with NLM_F_ACK
}

function readAll(connect: () => NetlinkSocket): ReadonlyMap<string, PacketCount> {
  using socket = connect();
  const attempt = 'cannot read the packet counters';
  const asker = new NetlinkAsker(socket, { attempt, code: 'nfacct' });
  const type = (accounting.subsystem << 8) | accounting.get;
  try {
    return new Map(
      asker.dump(
        type,
        (writer) => writer.netfilterHeader(0, 0),
        (bytes, { start, end }) => readCounter(bytes, start, end),
      ),
    );
  } catch (error) {
    throw error instanceof NativeError ? refusal(attempt, error.errno) : error;
  }
}

function readCounter(bytes: Uint8Array, start: number, end: number): readonly [name: string, count: PacketCount] {
  let name = '';
  let packets = 0;
  let count = 0;
  for (const attribute of readAttributes(bytes, start + 4, end)) {
    if (attribute.type === accounting.name) name = readText(bytes, attribute.start, attribute.end);
    else if (attribute.type === accounting.packets) packets = Number(readUint64be(bytes, attribute.start));
    else if (attribute.type === accounting.bytes) count = Number(readUint64be(bytes, attribute.start));
  }
  return [name, { packets, bytes: count }];
}

function refusal(attempt: string, errno: number): NativeError {
  const next =
    errno === EPERM
      ? 'run with CAP_NET_ADMIN'
      : errno === EINVAL
        ? 'the kernel needs CONFIG_NETFILTER_NETLINK_ACCT; where it is a module: modprobe nfnetlink_acct'
        : '';
  return new NativeError(attempt, { errno, syscall: 'nfnetlink_acct' }, next);
}
