/** Numbers of linux/netfilter/nfnetlink.h and nf_tables.h. */

export const BATCH = { BEGIN: 0x10, END: 0x11 } as const;
/** NFNL_SUBSYS_NFTABLES. */
export const subsystem = 10;
/** NFPROTO_... by the family of a table, as nft spells it. */
export const familyNumbers = { inet: 1, ip: 2, ip6: 10 } as const;
/** NFPROTO_INET. */
export const familyInet = 1;

/** Requests of nftables, and its notices of changes (group NFNLGRP_NFTABLES): the subsystem in the high byte. NEWGEN ends a transaction. */
export const NFT_MSG = {
  NEWTABLE: 0xa00,
  GETTABLE: 0xa01,
  DELTABLE: 0xa02,
  NEWCHAIN: 0xa03,
  GETCHAIN: 0xa04,
  DELCHAIN: 0xa05,
  NEWRULE: 0xa06,
  GETRULE: 0xa07,
  DELRULE: 0xa08,
  NEWSET: 0xa09,
  GETSET: 0xa0a,
  DELSET: 0xa0b,
  NEWSETELEM: 0xa0c,
  GETSETELEM: 0xa0d,
  DELSETELEM: 0xa0e,
  NEWGEN: 0xa0f,
  GETGEN: 0xa10,
  TRACE: 0xa11,
} as const;

/** Attributes by their container. */
export const NFTA = {
  TABLE: { NAME: 1, FLAGS: 2, USERDATA: 6 },
  CHAIN: { TABLE: 1, NAME: 3, HOOK: 4, POLICY: 5, TYPE: 7, FLAGS: 10 },
  HOOK: { NUMBER: 1, PRIORITY: 2 },
  RULE: { TABLE: 1, CHAIN: 2, HANDLE: 3, EXPRESSIONS: 4 },
  SET: {
    TABLE: 1,
    NAME: 2,
    FLAGS: 3,
    KEY_TYPE: 4,
    KEY_LENGTH: 5,
    DATA_TYPE: 6,
    DATA_LENGTH: 7,
    DESCRIPTION: 9,
    ID: 10,
    GC_INTERVAL: 12,
    USERDATA: 13,
    EXPRESSION: 17,
    COUNT: 20,
  },
  SET_DESCRIPTION: { SIZE: 1, CONCAT: 2 },
  SET_FIELD: { LENGTH: 1 },
  ELEM_LIST: { TABLE: 1, SET: 2, ELEMENTS: 3, SET_ID: 4 },
  ELEM: { KEY: 1, DATA: 2, FLAGS: 3, TIMEOUT: 4, EXPIRATION: 5, USERDATA: 6, EXPR: 7, KEY_END: 10 },
  LIST: { ELEM: 1 },
  DATA: { VALUE: 1, VERDICT: 2 },
  VERDICT: { CODE: 1, CHAIN: 2 },
  EXPR: { NAME: 1, DATA: 2 },
  COUNTER: { PACKETS: 2 },
  TRACE: {
    TABLE: 1,
    CHAIN: 2,
    RULE_HANDLE: 3,
    TYPE: 4,
    VERDICT: 5,
    ID: 6,
    NETWORK_HEADER: 8,
    POLICY: 16,
  },
  IMMEDIATE: { DATA: 2 },
  GENERATION: { ID: 1, PID: 2, NAME: 3 },
} as const;

/** Flags of a set. */
export const NFT_SET = {
  ANONYMOUS: 0x1,
  CONSTANT: 0x2,
  INTERVAL: 0x4,
  MAP: 0x8,
  TIMEOUT: 0x10,
  EVAL: 0x20,
  CONCAT: 0x80,
} as const;
/** The element ends an interval: it is the first address behind it. */
export const NFT_SET_ELEM_INTERVAL_END = 1;
/** Verdict code `goto`, -4. */
export const NFT_GOTO = 0xfffffffc;
