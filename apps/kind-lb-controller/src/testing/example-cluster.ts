import { parseIp } from '@switchyard/core';
import type { AddressSource } from '../plan/ip-pool.ts';

/** The lab's load-balancer host. */
export const sharedAddresses: AddressSource = {
  kind: 'shared',
  addresses: [parseIp('172.18.0.50'), parseIp('fd00:172:18::50')],
};
