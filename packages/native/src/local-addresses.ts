import { HostError, type IpAddress, type IpFamily, ipFromBytes } from '@switchyard/core';
import { NLM_F, NLMSG } from './netlink/constants.ts';
import { MessageWriter } from './netlink/message-writer.ts';
import { type NetlinkMessage, readAttributes, readErrno, readMessages, readUint32 } from './netlink/read-messages.ts';
import { NativeError } from './native-error.ts';
import { type NetlinkOptions, type NetlinkSocket, openNetlinkSocket } from './netlink-socket.ts';

/** Where addresses are asked for. */
export interface LocalAddressOptions {
  readonly ipFamily: IpFamily;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string;
  /** For tests; default `openNetlinkSocket`. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
}

/** Numbers of linux/rtnetlink.h, if_link.h and if_addr.h. */
const getLink = 18; // RTM_GETLINK
const getAddress = 22;
const linkExtMask = 29; // IFLA_EXT_MASK
const skipStatistics = 1 << 3; // RTEXT_FILTER_SKIP_STATS
const isUp = 1; // IFF_UP
const addressAttribute = 1; // IFA_ADDRESS
const localAttribute = 2;
const flagsAttribute = 8;
/** IFA_F_DADFAILED and IFA_F_TENTATIVE: the kernel does not answer them (yet); when it does it tells of the address again. */
const notYetOurs = 0x08 | 0x40;
const families: Readonly<Record<IpFamily, number>> = { IPv4: 2, IPv6: 10 };

/** The kernel fills at most 32 KB of a larger buffer. */
const bufferLength = 1 << 16;
const maxAttempts = 4;

/**
 * The addresses that packets of a family can be sent to on this node: those of all interfaces that are up, with or without a carrier,
 * loopback included, each once, in the kernel's order. Throws `NativeError`, or `NativeMissingError` where the addon was not built.
 */
export function localAddresses(options: LocalAddressOptions): readonly IpAddress[] {
  const { ipFamily, netns, open = openNetlinkSocket } = options;
  using socket = open({ protocol: 'route', ...(netns === undefined ? {} : { netns }) });
  const up = new Set(
    list(socket, writeListLinks, (bytes, { start }) =>
      (readUint32(bytes, start + 8) & isUp) === 0 ? undefined : readUint32(bytes, start + 4),
    ),
  );
  const family = families[ipFamily];
  const found = list(
    socket,
    (writer) => writeListAddresses(writer, family),
    (bytes, message) => {
      if (bytes[message.start] !== family || !up.has(readUint32(bytes, message.start + 4))) return undefined;
      return addressOf(bytes, message);
    },
  );
  return [...new Set(found)];
}

/** Undefined for one that is not in use yet. */
function addressOf(bytes: Uint8Array, { start, end }: NetlinkMessage): IpAddress | undefined {
  let flags = bytes[start + 2] ?? 0;
  let address: Uint8Array | undefined;
  let local: Uint8Array | undefined; // of a point-to-point link, where the address is the peer's
  for (const attribute of readAttributes(bytes, start + 8, end)) {
    const value = bytes.subarray(attribute.start, attribute.end);
    if (attribute.type === addressAttribute) address = value;
    else if (attribute.type === localAttribute) local = value;
    else if (attribute.type === flagsAttribute) flags = readUint32(bytes, attribute.start);
  }
  const found = local ?? address;
  return found === undefined || (flags & notYetOurs) !== 0 ? undefined : ipFromBytes(found);
}

function writeListLinks(writer: MessageWriter): void {
  writer.beginMessage({ type: getLink, flags: NLM_F.REQUEST | NLM_F.DUMP, sequence: 1 });
  for (let word = 0; word < 4; word++) writer.uint32(0); // struct ifinfomsg
  writer.attributeUint32(linkExtMask, skipStatistics);
  writer.endMessage();
}

function writeListAddresses(writer: MessageWriter, family: number): void {
  writer.beginMessage({ type: getAddress, flags: NLM_F.REQUEST | NLM_F.DUMP, sequence: 1 });
  writer.uint8(family); // struct ifaddrmsg
  for (let byte = 1; byte < 8; byte++) writer.uint8(0);
  writer.endMessage();
}

type Read<T> = (bytes: Uint8Array, message: NetlinkMessage) => T | undefined;

/** Lists again when the kernel says that something changed meanwhile; the last time it is taken as it is: another notice comes. */
function list<T>(socket: NetlinkSocket, write: (writer: MessageWriter) => void, read: Read<T>): readonly T[] {
  const writer = new MessageWriter();
  write(writer);
  for (let attempt = 1; ; attempt++) {
    socket.send(writer.bytes());
    const { items, isWhole } = receiveList(socket, read);
    if (isWhole || attempt === maxAttempts) return items;
  }
}

/** `isWhole`: the listing is of one moment. */
function receiveList<T>(
  socket: NetlinkSocket,
  read: Read<T>,
): { readonly items: readonly T[]; readonly isWhole: boolean } {
  const buffer = new Uint8Array(bufferLength);
  const items: T[] = [];
  let isWhole = true;
  for (let length = socket.receive(buffer); length !== undefined; length = socket.receive(buffer)) {
    const bytes = buffer.subarray(0, length);
    for (const message of readMessages(bytes)) {
      if ((message.flags & NLM_F.DUMP_INTR) !== 0) isWhole = false;
      if (message.type === NLMSG.ERROR || message.type === NLMSG.DONE) {
        const errno = readErrno(bytes, message.start);
        if (errno === 0) return { items, isWhole };
        throw new NativeError('cannot list the addresses of this node', { errno, syscall: 'rtnetlink' });
      }
      const item = read(bytes, message);
      if (item !== undefined) items.push(item);
    }
  }
  throw new HostError('route.unfinished', 'cannot list the addresses of this node: the kernel ended the list early');
}
