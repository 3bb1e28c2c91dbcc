import { noopLogger, seconds } from '@switchyard/core';
import { runnerIn, type Site } from '@switchyard/lab';
import type { IptablesHost } from '../../src/index.ts';
import { variant } from './support.ts';

/** Host of a backend that programs the node of a site. */
export function hostOf({ node, lab }: Site): IptablesHost {
  return {
    runner: runnerIn(node, lab.folder),
    logger: noopLogger,
    variant,
    masqueradeBit: 14,
    localhostNodePorts: true,
    tcpBeLiberal: false,
    syncPeriod: seconds(30),
    netns: `/run/netns/${node.namespace}`,
  };
}
