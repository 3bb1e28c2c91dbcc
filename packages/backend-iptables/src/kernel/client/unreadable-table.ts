import { HostError } from '@switchyard/core';
import { iptablesName, type IptablesPlace } from '@switchyard/netfilter/iptables';
import type { TableName } from '../../render/chains.ts';

/** iptables-nft cannot read a table, because nft wrote into it what iptables cannot express. */
export class UnreadableTableError extends HostError {
  override readonly name = 'UnreadableTableError';
  readonly table: TableName;

  constructor(place: IptablesPlace, table: TableName) {
    const family = place.ipFamily === 'IPv4' ? 'ip' : 'ip6';
    super(
      'iptables.incompatible',
      `cannot read table ${table} of ${iptablesName(place)}: nft wrote into it what iptables cannot express; look at it with ` +
        `'nft list table ${family} ${table}', and remove what does not belong there`,
    );
    this.table = table;
  }
}
