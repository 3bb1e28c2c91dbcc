import type { Drift } from '@switchyard/core/engine';
import { type NetlinkMessage, readAttributes, readText, readUint32be } from '@switchyard/native';

/**
 * Messages that announce changes (group NFNLGRP_NFTABLES), of linux/netfilter/nf_tables.h: the subsystem is in
 * the high byte. A transaction ends with NEWGEN.
 */
export const NFT_NOTICE = {
  NEWTABLE: 0xa00,
  DELTABLE: 0xa02,
  NEWCHAIN: 0xa03,
  DELCHAIN: 0xa05,
  NEWRULE: 0xa06,
  DELRULE: 0xa08,
  NEWSET: 0xa09,
  DELSET: 0xa0b,
  NEWSETELEM: 0xa0c,
  DELSETELEM: 0xa0e,
  NEWGEN: 0xa0f,
} as const;

/** NFTA_GEN_ID, NFTA_GEN_PROC_PID, NFTA_GEN_PROC_NAME. */
const attributes = { id: 1, pid: 2, name: 3 } as const;

/** A range of bytes; `end` is exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Reads the notices of nftables. */
export interface NoticeReader {
  /** Reads one message of a datagram. */
  note(bytes: Uint8Array, message: NetlinkMessage): void;
  /** Records that the kernel dropped notices: anything may have changed. */
  noteLoss(): void;
  /** Takes the changes of whole foreign transactions since the last call; undefined if they touched no own object. */
  take(): Drift | undefined;
}

/** End of a transaction: its number, and the process that made it. */
export interface Generation {
  readonly id: number;
  /** Process id in the host's pid namespace; 0 where the kernel gives none. */
  readonly pid: number;
  readonly name: string;
}

/** Reads the attributes of a NEWGEN, which lie behind `nfgenmsg`. */
export function readGeneration(bytes: Uint8Array, { start, end }: ByteRange): Generation {
  let id = 0;
  let pid = 0;
  let name = '';
  for (const { type, start: from, end: to } of readAttributes(bytes, start, end)) {
    if (type === attributes.id) id = readUint32be(bytes, from);
    if (type === attributes.pid) pid = readUint32be(bytes, from);
    if (type === attributes.name) name = readText(bytes, from, to);
  }
  return { id, pid, name };
}
