import { type MessageWriter, NLM_F } from '@switchyard/native';

/** Numbers of linux/netfilter/nfnetlink_acct.h, as far as they are used here. */
export const accounting = {
  subsystem: 7, // NFNL_SUBSYS_ACCT
  new: 0, // NFNL_MSG_ACCT_NEW, and so on
  get: 1,
  delete: 3,
  name: 1, // NFACCT_NAME
  packets: 2,
  bytes: 3,
} as const;

/** The kernel keeps 32 bytes for a name, a NUL among them. */
export const maxNameLength = 31;

/** The sequence number of every request here: a socket has one conversation. */
export const sequence = 1;

/** Makes a counter; answered by EEXIST where there is one. */
export function writeNew(writer: MessageWriter, name: string): void {
  begin(writer, accounting.new, NLM_F.REQUEST | NLM_F.ACK | NLM_F.CREATE | NLM_F.EXCL);
  writer.attributeText(accounting.name, name);
  writer.endMessage();
}

/** Removes a counter; answered by EBUSY while a rule uses it, by ENOENT where there is none. */
export function writeDelete(writer: MessageWriter, name: string): void {
  begin(writer, accounting.delete, NLM_F.REQUEST | NLM_F.ACK);
  writer.attributeText(accounting.name, name);
  writer.endMessage();
}

/** Asks for all counters. */
export function writeList(writer: MessageWriter): void {
  begin(writer, accounting.get, NLM_F.REQUEST | NLM_F.DUMP);
  writer.endMessage();
}

function begin(writer: MessageWriter, type: number, flags: number): void {
  writer.beginMessage({ type: (accounting.subsystem << 8) | type, flags, sequence });
  writer.netfilterHeader(0, 0);
}
