import type { IpFamily } from '@switchyard/core';

/**
 * How rules read packets of one family. nft names raw places `@base,bit offset,bit length`; `nh` is the IP header, `th` what
 * follows it. Raw, because the same places are read in packets that ICMP errors quote, and nft wants keys of one type.
 */
export interface PacketPlaces {
  readonly suffix: '4' | '6';
  readonly ip: 'ip' | 'ip6';
  /**
   * The client's address in a key. nft 1.0 gives keys that rules fill 16 bytes, and the port needs four of them: of IPv6 addresses
   * the first 32 bits are left out. They identify providers, not clients.
   */
  readonly client: string;
  readonly wholeClient: string;
  /** In the packet that an ICMP error quotes; `th` is the error's own header. */
  readonly quoted: {
    readonly client: string;
    readonly wholeClient: string;
    readonly clientPort: string;
    /** Protocol, virtual address and port. */
    readonly place: string;
    /** Matches where these places are right: no IP options. */
    readonly guard: string;
  };
  /** Matches ICMP errors about a connection. */
  readonly errors: string;
  /** The same in all fragments of a packet. */
  readonly fragmentKey: string;
  readonly isFirstFragment: string;
  readonly isLaterFragment: string;
}

/** By family. */
export const packetPlaces: Readonly<Record<IpFamily, PacketPlaces>> = {
  IPv4: {
    suffix: '4',
    ip: 'ip',
    client: '@nh,96,32',
    wholeClient: '@nh,96,32',
    quoted: {
      client: '@th,192,32',
      wholeClient: '@th,192,32',
      clientPort: '@th,240,32',
      place: '@th,136,8 . @th,160,32 . @th,224,16',
      guard: '@th,64,8 0x45 ',
    },
    errors: 'icmp type { destination-unreachable, time-exceeded, parameter-problem }',
    fragmentKey: 'ip saddr . ip daddr . ip id',
    isFirstFragment: 'ip frag-off & 0x3fff == 0x2000',
    isLaterFragment: 'ip frag-off & 0x1fff != 0',
  },
  IPv6: {
    suffix: '6',
    ip: 'ip6',
    client: '@nh,96,96',
    wholeClient: '@nh,64,128',
    quoted: {
      client: '@th,288,96',
      wholeClient: '@th,256,128',
      clientPort: '@th,400,32',
      place: '@th,112,8 . @th,128,128 . @th,384,16',
      guard: '',
    },
    errors: 'icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem }',
    fragmentKey: '@nh,96,96 . @nh,352,32',
    isFirstFragment: 'ip6 nexthdr 44 @nh,336,16 & 0xfff9 == 1',
    isLaterFragment: 'ip6 nexthdr 44 @nh,336,16 & 0xfff8 != 0',
  },
};
