import { type IpAddress, type IpFamily, type Port, tryParsePort } from '@switchyard/core';
import { type UdpFlow } from '@switchyard/core/engine';
import { AttributeCursor, readUint16be, readUint32be } from '@switchyard/native';
import { AddressTexts } from './address-texts.ts';
import { addressFamilies, conntrack, udp } from './flow-messages.ts';

/** A UDP flow as the kernel listed it. */
export interface TrackedFlow extends UdpFlow {
  readonly ipFamily: IpFamily;
  /** The kernel's number for this entry. A later entry that is alike in everything can have it again. */
  readonly id: number;
  /** Conntrack zone (`ct zone`) of both directions; 0 unless a rule sets one. */
  readonly zone: number;
  /** Attributes for reply tuple, zone and id. The next flow of this client has another reply tuple once another endpoint answers. */
  readonly handle: Uint8Array;
}

const netfilterHeaderLength = 4;

/** Reads entries without making objects for unwanted ones. Call `enter`, then `flow`. */
export class FlowReader {
  readonly #ipFamily: IpFamily;
  readonly #addressLength: 4 | 16;
  readonly #texts: AddressTexts;
  readonly #message = new AttributeCursor();
  readonly #tuple = new AttributeCursor();
  readonly #part = new AttributeCursor();
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  #end = 0;
  // Of the tuple read last.
  #sourceAt = 0;
  #destinationAt = 0;
  #protocol = 0;
  #sourcePort = 0;
  #destinationPort = 0;

  constructor(ipFamily: IpFamily) {
    this.#ipFamily = ipFamily;
    this.#addressLength = ipFamily === 'IPv4' ? 4 : 16;
    this.#texts = new AddressTexts(this.#addressLength);
  }

  /** Goes to the entry between two offsets; its destination port if it is a UDP flow of the family, else undefined. */
  enter(bytes: Uint8Array, start: number, end: number): number | undefined {
    if (bytes[start] !== addressFamilies[this.#ipFamily]) return undefined;
    this.#bytes = bytes;
    this.#start = start + netfilterHeaderLength;
    this.#end = end;
    // The kernel writes the original tuple first; that it must is nowhere written, so look for it.
    if (!this.#find(conntrack.tupleOrig) || !this.#readTuple() || this.#protocol !== udp) return undefined;
    return this.#destinationPort;
  }

  /** The entry of the last successful `enter` if it is wanted; undefined also if it lacks what every UDP flow has. */
  flow(isWanted: (flow: UdpFlow) => boolean): TrackedFlow | undefined {
    const source = this.#address(this.#sourceAt);
    const destination = this.#address(this.#destinationAt);
    const [sourcePort, destinationPort] = this.#ports();
    if (!this.#find(conntrack.tupleReply) || !this.#readTuple()) return undefined;
    const [replySourcePort] = this.#ports();
    if (sourcePort === undefined || destinationPort === undefined || replySourcePort === undefined) return undefined;
    const replySource = this.#address(this.#sourceAt);
    const flow = { source, sourcePort, destination, destinationPort, replySource, replySourcePort };
    if (!isWanted(flow)) return undefined;
    const id = this.#find(conntrack.id) ? readUint32be(this.#bytes, this.#message.start) : 0;
    const zone = this.#find(conntrack.zone) ? readUint16be(this.#bytes, this.#message.start) : 0;
    return { ...flow, ipFamily: this.#ipFamily, id, zone, handle: this.#handle() };
  }

  /** Attributes that name the entry, with their headers and padding, as they came. */
  #handle(): Uint8Array {
    const spans: Uint8Array[] = [];
    this.#message.enter(this.#bytes, this.#start, this.#end);
    while (this.#message.next()) {
      const { type, start, end } = this.#message;
      if (type !== conntrack.tupleReply && type !== conntrack.zone && type !== conntrack.id) continue;
      spans.push(this.#bytes.subarray(start - 4, (end + 3) & ~3));
    }
    return new Uint8Array(Buffer.concat(spans));
  }

  #find(type: number): boolean {
    this.#message.enter(this.#bytes, this.#start, this.#end);
    while (this.#message.next()) if (this.#message.type === type) return true;
    return false;
  }

  /** Reads the tuple that `#message` stands on; false unless it has both addresses and a protocol. */
  #readTuple(): boolean {
    this.#sourceAt = this.#destinationAt = this.#protocol = this.#sourcePort = this.#destinationPort = 0;
    this.#tuple.enter(this.#bytes, this.#message.start, this.#message.end);
    while (this.#tuple.next()) {
      if (this.#tuple.type === conntrack.tupleIp) this.#readAddresses();
      else if (this.#tuple.type === conntrack.tupleProto) this.#readProtocol();
    }
    return this.#sourceAt > 0 && this.#destinationAt > 0 && this.#protocol > 0;
  }

  #readAddresses(): void {
    const part = this.#part;
    part.enter(this.#bytes, this.#tuple.start, this.#tuple.end);
    while (part.next()) {
      if (part.end - part.start !== this.#addressLength) continue;
      if (part.type === conntrack.ipV4Source || part.type === conntrack.ipV6Source) this.#sourceAt = part.start;
      else this.#destinationAt = part.start;
    }
  }

  #readProtocol(): void {
    const part = this.#part;
    part.enter(this.#bytes, this.#tuple.start, this.#tuple.end);
    while (part.next()) {
      if (part.type === conntrack.protoNumber) this.#protocol = this.#bytes[part.start] ?? 0;
      else if (part.type === conntrack.protoSourcePort) this.#sourcePort = readUint16be(this.#bytes, part.start);
      else if (part.type === conntrack.protoDestinationPort) {
        this.#destinationPort = readUint16be(this.#bytes, part.start);
      }
    }
  }

  #address(at: number): IpAddress {
    return this.#texts.read(this.#bytes, at);
  }

  #ports(): readonly [Port | undefined, Port | undefined] {
    return [tryParsePort(this.#sourcePort), tryParsePort(this.#destinationPort)];
  }
}
