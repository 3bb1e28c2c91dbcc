import { HostError, mappedBytes } from '@switchyard/core';
import { NativeError } from './native-error.ts';
import { NLM_F, NLMSG } from './netlink/constants.ts';
import { MessageWriter } from './netlink/message-writer.ts';
import {
  type NetlinkMessage,
  readAttributes,
  readErrno,
  readMessages,
  readText,
  readUint32,
} from './netlink/read-messages.ts';
import type { NetlinkSocket } from './netlink-socket.ts';

/** A network device. */
export interface Device {
  readonly index: number;
  readonly name: string;
  readonly isLoopback: boolean;
  /** With or without a carrier. */
  readonly isUp: boolean;
  /** `veth`, `bridge`, `vlan`; empty for hardware. */
  readonly kind: string;
  /** Index of the bridge or bond that it is a port of; 0 where there is none. */
  readonly master: number;
  /** In hexadecimal digits; empty for a device without. */
  readonly hardwareAddress: string;
}

/** An address on a device. */
export interface DeviceAddress {
  readonly device: number;
  /** 16 bytes, IPv4 as ::ffff:a.b.c.d. */
  readonly address: Uint8Array;
  /** Bits of the family's own length. */
  readonly prefixLength: number;
  /** Valid everywhere: neither link-local nor of the host alone. */
  readonly isGlobal: boolean;
  /** Not the first of its subnet (IPv4), not to be used for new connections or not yet (IPv6). */
  readonly isSecondary: boolean;
  /** The kernel answers it: not an IPv6 one that is looked for among the neighbours yet, or was found there. */
  readonly isInUse: boolean;
}

/** `AF_INET`, `AF_INET6`. */
export const addressFamilies = { IPv4: 2, IPv6: 10 } as const;

const requests = { getLink: 18, getAddress: 22, getRoute: 26 } as const;
const flags = { up: 0x1, loopback: 0x8 } as const;
const linkAttributes = { hardwareAddress: 1, name: 3, master: 10, info: 18, kind: 1, extendedMask: 29 } as const;
const addressAttributes = { address: 1, local: 2, flags: 8 } as const;
const routeAttributes = { destination: 1, device: 4 } as const;
/** RTEXT_FILTER_SKIP_STATS. */
const withoutStatistics = 8;
const addressFlags = { secondary: 0x01, failed: 0x08, deprecated: 0x20, tentative: 0x40 } as const;
/** Lengths of ifinfomsg, ifaddrmsg and rtmsg. */
const headerLengths = { link: 16, address: 8, route: 12 } as const;
const attempts = 10;

/** Asks the kernel about devices over a socket that nobody else uses. Throws `NativeError` and `HostError`. */
export class DeviceReader {
  readonly #socket: NetlinkSocket;
  readonly #writer = new MessageWriter();
  readonly #buffer = new Uint8Array(1 << 16);
  #sequence = 0;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  /** All devices of the network namespace. */
  devices(): readonly Device[] {
    const body = (): void => {
      this.#writer.raw(new Uint8Array(headerLengths.link));
      this.#writer.attributeUint32(linkAttributes.extendedMask, withoutStatistics);
    };
    return this.#dump(requests.getLink, body, (bytes, { start, end }) => {
      let name = '';
      let kind = '';
      let master = 0;
      let hardwareAddress = '';
      for (const { type, start: from, end: to } of readAttributes(bytes, start + headerLengths.link, end)) {
        if (type === linkAttributes.name) name = readText(bytes, from, to);
        if (type === linkAttributes.master) master = readUint32(bytes, from);
        if (type === linkAttributes.hardwareAddress)
          hardwareAddress = Buffer.from(bytes.subarray(from, to)).toString('hex');
        if (type !== linkAttributes.info) continue;
        for (const inner of readAttributes(bytes, from, to)) {
          if (inner.type === linkAttributes.kind) kind = readText(bytes, inner.start, inner.end);
        }
      }
      const bits = readUint32(bytes, start + 8);
      const isLoopback = (bits & flags.loopback) !== 0;
      const isUp = (bits & flags.up) !== 0;
      return { index: readUint32(bytes, start + 4), name, kind, isLoopback, isUp, master, hardwareAddress };
    });
  }

  /** All addresses of a family, in the kernel's order: the first of a device is its primary one. */
  addresses(family: number): readonly DeviceAddress[] {
    const body = (): void => this.#writer.raw(Uint8Array.of(family, 0, 0, 0, 0, 0, 0, 0));
    return this.#dump(requests.getAddress, body, (bytes, { start, end }) => {
      if (bytes[start] !== family) return undefined;
      let address = new Uint8Array(0);
      let isLocalKnown = false;
      let more = bytes[start + 2] ?? 0;
      for (const { type, start: from, end: to } of readAttributes(bytes, start + headerLengths.address, end)) {
        // Of a point-to-point device IFA_ADDRESS is the other side.
        if (type === addressAttributes.local) isLocalKnown = true;
        if (type === addressAttributes.local || (type === addressAttributes.address && !isLocalKnown)) {
          address = bytes.slice(from, to);
        }
        if (type === addressAttributes.flags) more = readUint32(bytes, from);
      }
      if (address.length === 0) return undefined; // a device of its own kind has none
      const unusable = addressFlags.failed | addressFlags.deprecated | addressFlags.tentative;
      const isSecondary = (more & (family === addressFamilies.IPv4 ? addressFlags.secondary : unusable)) !== 0;
      return {
        device: readUint32(bytes, start + 4),
        address: mappedBytes(address),
        prefixLength: bytes[start + 1] ?? 0,
        isGlobal: bytes[start + 3] === 0,
        isSecondary,
        isInUse: (more & (addressFlags.failed | addressFlags.tentative)) === 0,
      };
    });
  }

  /** The device by which a destination is reached, of 4 or 16 bytes; undefined where there is no route. */
  deviceTo(destination: Uint8Array): number | undefined {
    const family = destination.length === 4 ? addressFamilies.IPv4 : addressFamilies.IPv6;
    let device: number | undefined;
    this.#ask(requests.getRoute, 0, () => {
      this.#writer.raw(Uint8Array.of(family, destination.length * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
      this.#writer.attributeBytes(routeAttributes.destination, destination);
    });
    this.#answers((bytes, { type, start, end }) => {
      if (type === NLMSG.ERROR) return true; // unreachable, in one of several ways
      for (const attribute of readAttributes(bytes, start + headerLengths.route, end)) {
        if (attribute.type === routeAttributes.device) device = readUint32(bytes, attribute.start);
      }
      return true;
    });
    return device;
  }

  #dump<T>(
    type: number,
    body: () => void,
    read: (bytes: Uint8Array, message: NetlinkMessage) => T | undefined,
  ): readonly T[] {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found: T[] = [];
      let isWhole = true;
      this.#ask(type, NLM_F.DUMP, body);
      this.#answers((bytes, message) => {
        if ((message.flags & NLM_F.DUMP_INTR) !== 0) isWhole = false;
        if (message.type === NLMSG.DONE) return true;
        const errno = message.type === NLMSG.ERROR ? readErrno(bytes, message.start) : 0;
        if (errno !== 0) throw new NativeError('cannot list network devices', { errno, syscall: 'netlink dump' });
        const item = read(bytes, message);
        if (item !== undefined) found.push(item);
        return false;
      });
      if (isWhole) return found;
    }
    const text = `cannot list network devices: they changed during each of ${attempts} attempts; will be tried again`;
    throw new HostError('route.busy', text);
  }

  #ask(type: number, more: number, body: () => void): void {
    const writer = this.#writer;
    writer.clear();
    writer.beginMessage({ type, flags: NLM_F.REQUEST | more, sequence: ++this.#sequence });
    body();
    writer.endMessage();
    this.#socket.send(writer.bytes());
  }

  #answers(take: (bytes: Uint8Array, message: NetlinkMessage) => boolean): void {
    for (;;) {
      const length = this.#socket.receive(this.#buffer);
      if (length === undefined) {
        const text = 'cannot list network devices: the kernel ended an answer in the middle; will be tried again';
        throw new HostError('route.unfinished', text);
      }
      const bytes = this.#buffer.subarray(0, length);
      for (const message of readMessages(bytes)) {
        if (message.sequence === this.#sequence && take(bytes, message)) return;
      }
    }
  }
}
