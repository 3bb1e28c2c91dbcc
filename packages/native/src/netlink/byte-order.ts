import { endianness } from 'node:os';

/** Whether this machine stores the low byte first: netlink's own headers are in the machine's byte order. */
export const isLittleEndian: boolean = endianness() === 'LE';
