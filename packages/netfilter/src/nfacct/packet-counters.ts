import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import {
  NativeError,
  NetlinkAsker,
  type NetlinkMessage,
  type NetlinkOptions,
  type NetlinkSocket,
  NLM_F,
  openNetlinkSocket,
  readAttributes,
  readText,
  readUint64be,
  type WriteBody,
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
  name: 1, // NFACCT_NAME
  packets: 2,
  bytes: 3,
} as const;

/** The kernel keeps 32 bytes for a name, a NUL among them. */
const maxNameLength = 31;
const { EEXIST, EINVAL, EPERM } = constants.errno;

/** Opens nothing yet: each call has a socket of its own. */
export function createPacketCounters({ netns, open = openNetlinkSocket }: PacketCounterOptions = {}): PacketCounters {
  const ask = <T>(attempt: string, work: (asker: NetlinkAsker) => T): T => {
    using socket = open({ protocol: 'netfilter', netns });
    return work(new NetlinkAsker(socket, { attempt, code: 'nfacct' }));
  };
  return {
    ensure: (name) => {
      if (name === '' || name.length > maxNameLength) {
        throw new UsageError('nfacct.name', `'${name}' cannot name a counter: 1 to ${maxNameLength} characters can`);
      }
      const attempt = `cannot make the packet counter ${name}`;
      const errno = ask(attempt, (asker) =>
        asker.acknowledge(messageType(accounting.new), NLM_F.CREATE | NLM_F.EXCL, (writer) => {
          writer.netfilterHeader(0, 0);
          writer.attributeText(accounting.name, name);
        }),
      );
      if (errno !== 0 && errno !== EEXIST) throw refusal(attempt, errno);
    },
    read: () => {
      const attempt = 'cannot read the packet counters';
      try {
        return ask(attempt, (asker) => new Map(asker.dump(messageType(accounting.get), writeHeader, readCounter)));
      } catch (error) {
        throw error instanceof NativeError ? refusal(attempt, error.errno) : error;
      }
    },
  };
}

function messageType(type: number): number {
  return (accounting.subsystem << 8) | type;
}

const writeHeader: WriteBody = (writer) => writer.netfilterHeader(0, 0);

function readCounter(bytes: Uint8Array, { start, end }: NetlinkMessage): readonly [name: string, count: PacketCount] {
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

const advice: Readonly<Record<number, string>> = {
  [EPERM]: 'run with CAP_NET_ADMIN',
  [EINVAL]: 'the kernel needs CONFIG_NETFILTER_NETLINK_ACCT; where it is a module: modprobe nfnetlink_acct',
};

function refusal(attempt: string, errno: number): NativeError {
  return new NativeError(attempt, { errno, syscall: 'nfnetlink_acct' }, advice[errno]);
}
