import { type IpAddress, parseIp } from '@switchyard/core';

/** Pods that stand for endpoints in cases written as programs: two on the node under test, two on the other one. */
export type PodName = 'near' | 'near2' | 'far' | 'far2';

/** Their IPv4 addresses in the plan of scenarios; the IPv6 ones show the same digits. */
export const sequencePods: Readonly<Record<PodName, IpAddress>> = {
  near: parseIp('10.244.1.5'),
  near2: parseIp('10.244.1.6'),
  far: parseIp('10.244.2.5'),
  far2: parseIp('10.244.2.6'),
};
