import { NetlinkAsker, type WriteBody } from '../netlink/netlink-asker.ts';
import { readAttributes, readUint32 } from '../netlink/read-messages.ts';
import { openNetlinkSocket } from '../netlink-socket.ts';
import { DeviceReader } from './device-reader.ts';

const getNamespaceId = 90; // RTM_GETNSID of linux/rtnetlink.h
const attributes = { id: 1, pid: 2 } as const; // NETNSA_NSID and NETNSA_PID of linux/net_namespace.h
const headerLength = 4; // of rtgenmsg, padded
const noId = 0xff_ff_ff_ff; // NETNSA_NSID_NOT_ASSIGNED

/**
 * Those of the processes whose network namespace a device of `netns` (default: the process's own) leads into: a veth pair, or one device on another. The kernel gives
 * such a namespace an id when it lists the device (Linux 4.0). Ended processes are in none. Throws `NativeError`,
 * or `NativeMissingError` where the addon was not built.
 */
export function linkedNamespaces(pids: readonly number[], netns?: string): ReadonlySet<number> {
  using socket = openNetlinkSocket({ protocol: 'route', netns });
  new DeviceReader(socket).devices();
  const asker = new NetlinkAsker(socket, { attempt: 'cannot read the id of a network namespace', code: 'route' });
  return new Set(pids.filter((pid) => idOf(asker, pid) !== undefined));
}

function idOf(asker: NetlinkAsker, pid: number): number | undefined {
  const body: WriteBody = (writer) => {
    writer.raw(new Uint8Array(headerLength));
    writer.attributeUint32(attributes.pid, pid);
  };
  return asker.get(getNamespaceId, body, {
    isAbsent: (errno) => errno !== 0, // the process has ended
    read: (bytes, { start, end }) => {
      const found = [...readAttributes(bytes, start + headerLength, end)].find(({ type }) => type === attributes.id);
      const id = found === undefined ? noId : readUint32(bytes, found.start);
      return id === noId ? undefined : id;
    },
  });
}
