import { assertNever, type IpFamily, type PodDetector } from '@switchyard/core';
import type { DetectLocal } from '../config/run-config.ts';
import type { OwnNode } from './own-node.ts';

/** Returns how the kernel recognizes pods of one family, from `detectLocalMode` and the current Node. */
export function podDetectorOf(detectLocal: DetectLocal, node: OwnNode, ipFamily: IpFamily): PodDetector {
  switch (detectLocal.kind) {
    case 'clusterCIDR': {
      const cidr = detectLocal.cidrs[ipFamily];
      return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
    }
    case 'nodeCIDR': {
      const cidr = node.podCidrOf(ipFamily);
      return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
    }
    case 'bridgeInterface':
      return { kind: 'interface', name: detectLocal.name };
    case 'interfaceNamePrefix':
      return { kind: 'interfacePrefix', prefix: detectLocal.prefix };
    default:
      return assertNever(detectLocal);
  }
}
