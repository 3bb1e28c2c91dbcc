import type { TableFamily, TablePlace } from '@switchyard/netfilter';

/** nftables tables of any owner, by name. Reads neither sets nor rules. Methods reject with `HostError`. */
export interface NftTables {
  /** Empty if the kernel has no nftables. */
  listTables(family: TableFamily): Promise<readonly string[]>;
  /** Names of the chains of a table; empty if there is no such table. */
  listChains(place: NftTable): Promise<readonly string[]>;
  /** False if there is no such table. */
  deleteTable(place: NftTable): Promise<boolean>;
}

/** A table of this network namespace. */
export type NftTable = Pick<TablePlace, 'family' | 'table'>;

/** The tables of this network namespace's kernel, over netlink. */
export const kernelTables: NftTables = {
  listTables: async (family) => (await import('@switchyard/netfilter')).listTables(family),
  listChains: async (place) => (await import('@switchyard/netfilter')).listChains(place),
  deleteTable: async (place) => (await import('@switchyard/netfilter')).deleteTable(place),
};
