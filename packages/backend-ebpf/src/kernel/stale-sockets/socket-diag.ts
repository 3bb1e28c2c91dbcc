import { constants } from 'node:os';
import { type IpFamily, mappedBytes } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  NetlinkAsker,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  readErrno,
  readUint32,
  receiveAnswers,
} from '@switchyard/native';

/** A connected UDP socket as SOCK_DIAG lists it. */
export interface ConnectedSocket {
  /** Socket cookie, by which programs know it. */
  readonly cookie: bigint;
  /** `struct inet_diag_sockid`, which identifies it for SOCK_DESTROY. */
  readonly id: Uint8Array;
  /** AF_INET, AF_INET6. */
  readonly family: number;
}

/** Numbers of linux/sock_diag.h and linux/inet_diag.h. */
const diagByFamily = 20; // SOCK_DIAG_BY_FAMILY
const destroy = 21; // SOCK_DESTROY
const established = 1 << 1; // TCP_ESTABLISHED, which a connected UDP socket is in
const udp = 17;
const idSize = 48; // struct inet_diag_sockid
const idOffset = 4; // in struct inet_diag_msg
const destinationPortAt = 2;
const destinationAt = 20;
const cookieAt = 40;

/** AF_INET, AF_INET6. A socket of the second may be connected to an IPv4 address. */
const families: Readonly<Record<IpFamily, readonly number[]>> = { IPv4: [2, 10], IPv6: [10] };
const inet = 2;

const { ENOENT, EOPNOTSUPP, EPERM } = constants.errno;

/** Connected UDP sockets that may lead to addresses of a family. Throws `NativeError`. */
export function listConnectedUdp(
  socket: NetlinkSocket,
  ipFamily: IpFamily,
  isWanted: (cookie: bigint) => boolean,
): readonly ConnectedSocket[] {
  const writer = new MessageWriter();
  return families[ipFamily].flatMap((family) => {
    writer.clear();
    writer.beginMessage({ type: diagByFamily, flags: NLM_F.REQUEST | NLM_F.DUMP, sequence: 1 });
    writeRequest(writer, family, new Uint8Array(idSize));
    writer.endMessage();
    socket.send(writer.bytes());
    return receiveList(socket, family, isWanted);
  });
}

/** Destination of a socket: 16 bytes of address as in maps, and the port. */
export function destinationOf({ id, family }: ConnectedSocket): {
  readonly address: Uint8Array;
  readonly port: number;
} {
  const port = ((id[destinationPortAt] ?? 0) << 8) | (id[destinationPortAt + 1] ?? 0);
  const length = family === inet ? 4 : 16;
  return { address: mappedBytes(id.slice(destinationAt, destinationAt + length)), port };
}

/** False if it was closed or connected elsewhere. Throws `NativeError`: `EOPNOTSUPP` where the kernel cannot. */
export function destroySocket(socket: NetlinkSocket, { family, id }: ConnectedSocket): boolean {
  const attempt = 'cannot destroy a UDP socket of a deleted endpoint';
  const asker = new NetlinkAsker(socket, { attempt, code: 'sockets' });
  const errno = asker.acknowledge(destroy, 0, (writer) => writeRequest(writer, family, id));
  if (errno !== 0 && errno !== ENOENT) throw refusal(attempt, errno);
  return errno === 0;
}

/** `struct inet_diag_req_v2`. */
function writeRequest(writer: MessageWriter, family: number, id: Uint8Array): void {
  writer.uint8(family);
  writer.uint8(udp);
  writer.uint8(0); // no attributes
  writer.uint8(0);
  writer.uint32(established);
  writer.raw(id);
}

/** Ends early when the kernel runs out of memory; the next sweep finds the rest. */
function receiveList(
  socket: NetlinkSocket,
  family: number,
  isWanted: (cookie: bigint) => boolean,
): readonly ConnectedSocket[] {
  const found: ConnectedSocket[] = [];
  for (const [{ type, start }, bytes] of receiveAnswers(socket)) {
    if (type === NLMSG.ERROR || type === NLMSG.DONE) {
      const errno = readErrno(bytes, start);
      if (errno !== 0) throw refusal('cannot list UDP sockets', errno);
      return found;
    }
    const at = start + idOffset;
    const cookie = BigInt(readUint32(bytes, at + cookieAt)) | (BigInt(readUint32(bytes, at + cookieAt + 4)) << 32n);
    if (isWanted(cookie)) found.push({ cookie, id: bytes.slice(at, at + idSize), family });
  }
  return found;
}

const advice: Readonly<Record<number, string>> = {
  [EPERM]: 'run with CAP_NET_ADMIN',
  [EOPNOTSUPP]: 'the kernel needs CONFIG_INET_DIAG_DESTROY',
  [ENOENT]: 'the kernel needs CONFIG_INET_UDP_DIAG; where it is a module: modprobe udp_diag',
};

function refusal(attempt: string, errno: number): NativeError {
  return new NativeError(attempt, { errno, syscall: 'sock_diag' }, advice[errno]);
}
