/** Flags of a netlink message, of linux/netlink.h, as far as they are used here. */
export const NLM_F = {
  REQUEST: 0x1,
  ACK: 0x4,
  DUMP_INTR: 0x10,
  ACK_TLVS: 0x200,
  EXCL: 0x200,
  DUMP: 0x300,
  CREATE: 0x400,
  APPEND: 0x800,
} as const;
/** Attributes of an error. */
export const NLMSGERR = { MSG: 1, OFFS: 2 } as const;
/** Control messages of netlink. */
export const NLMSG = { ERROR: 2, DONE: 3 } as const;
