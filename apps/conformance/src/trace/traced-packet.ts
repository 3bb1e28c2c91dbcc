import type { IpAddress, IpFamily, Protocol } from '@switchyard/core';

/** The first packet of a flow that is to be followed. */
export interface TracedPacket {
  readonly family: IpFamily;
  readonly protocol: Protocol;
  /** Of the sender; undefined: not known, then what the sender's socket was led to cannot always be found. */
  readonly source?: IpAddress | undefined;
  readonly address: IpAddress;
  readonly port: number;
}
