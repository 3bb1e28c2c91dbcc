import { type IpFamily, noopLogger } from '@switchyard/core';
import { DrivenBackend } from '@switchyard/core/testing';
import { createSite as createLabSite, type LabHost, type Site } from '@switchyard/lab';
import { nftablesBackend, type NftablesHost } from '../../src/index.ts';

export type { Site };

export const { signal } = new AbortController();

/** The options of a backend in a lab host's namespace. */
export function hostIn(host: LabHost): NftablesHost {
  return { logger: noopLogger, netns: `/run/netns/${host.namespace}` };
}

/** A backend on a real kernel, and the last table given to it. */
export class Kernel extends DrivenBackend {
  static async open(host: LabHost, family: IpFamily = 'IPv4'): Promise<Kernel> {
    return new Kernel(await nftablesBackend.open(hostIn(host), family, signal));
  }
}

/** Two nodes with one pod each; forwarding on the first is for the test to program. */
export function createSite(name: string): Promise<Site> {
  return createLabSite(name, signal);
}

/** A listing without the protocol match that only nft wants; nft prints numbers where the machine has no /etc/protocols. */
export function withoutProtocolMatch(listing: string): string {
  return listing.replaceAll(/meta l4proto \{ (?:tcp, udp, sctp|6, 17, 132) \} /g, '');
}

/** A listing without what is different at every look: how long the heartbeats still live. */
export function withoutAges(listing: string): string {
  return listing.replaceAll(/ expires \S+/g, '');
}
