import { type IpFamily, ipFamilies } from '@switchyard/core';
import type { FamilyCell } from '../model/case.ts';

/** The IP families of a cell's cluster. */
export function familiesOfCell(cell: FamilyCell): readonly IpFamily[] {
  switch (cell) {
    case 'ipv4':
      return ['IPv4'];
    case 'ipv6':
      return ['IPv6'];
    case 'dual':
      return ipFamilies;
  }
}
