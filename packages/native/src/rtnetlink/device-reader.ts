import { mappedBytes } from '@switchyard/core';
import { type AskerTexts, NetlinkAsker, type WriteBody } from '../netlink/netlink-asker.ts';
import { readAttributes, readText, readUint32 } from '../netlink/read-messages.ts';
import type { NetlinkSocket } from '../netlink-socket.ts';

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
  /** IPv4: not the first address of its subnet. IPv6: not for new connections. */
  readonly isSecondary: boolean;
  /** The kernel answers for it: false for an IPv6 address during, or after a failed, duplicate address detection. */
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

const texts: AskerTexts = { attempt: 'cannot list network devices', code: 'route' };

/** Reads network devices from the kernel over a socket of its own. Throws `NativeError` and `HostError`. */
export class DeviceReader {
  readonly #asker: NetlinkAsker;

  constructor(socket: NetlinkSocket) {
    this.#asker = new NetlinkAsker(socket, texts);
  }

  /** All devices of the network namespace. */
  devices(): readonly Device[] {
    const body: WriteBody = (writer) => {
      writer.raw(new Uint8Array(headerLengths.link));
      writer.attributeUint32(linkAttributes.extendedMask, withoutStatistics);
    };
    return this.#asker.dump(requests.getLink, body, (bytes, { start, end }) => {
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
    const body: WriteBody = (writer) => writer.raw(Uint8Array.of(family, 0, 0, 0, 0, 0, 0, 0));
    return this.#asker.dump(requests.getAddress, body, (bytes, { start, end }) => {
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
      if (address.length === 0) return undefined; // some kinds of devices have none
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

  /** The device of the route to a destination of 4 or 16 bytes; undefined without a route. */
  deviceTo(destination: Uint8Array): number | undefined {
    const family = destination.length === 4 ? addressFamilies.IPv4 : addressFamilies.IPv6;
    const body: WriteBody = (writer) => {
      writer.raw(Uint8Array.of(family, destination.length * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
      writer.attributeBytes(routeAttributes.destination, destination);
    };
    return this.#asker.get(requests.getRoute, body, {
      isAbsent: (errno) => errno !== 0, // unreachable, in one of several ways
      read: (bytes, { start, end }) => {
        const attributes = [...readAttributes(bytes, start + headerLengths.route, end)];
        const device = attributes.find(({ type }) => type === routeAttributes.device);
        return device && readUint32(bytes, device.start);
      },
    });
  }
}
