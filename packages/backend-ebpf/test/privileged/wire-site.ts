import { type IpFamily, ipFamilies, noopLogger, systemClock } from '@switchyard/core';
import { awaitEcho, createSite, type LabHost, type LabNode, type Site, startEchoServer } from '@switchyard/lab';
import { DeviceReader, openNetlinkSocket } from '@switchyard/native';
import { expect } from 'vitest';
import { WirePath, type WirePathOptions } from '../../src/kernel/wire/wire-path.ts';
import { OpenMapSet } from '../../src/kernel/open-map-set.ts';
import { WireMaps } from './wire-maps.ts';

export const { signal } = new AbortController();

/** Where the echo server on the node itself listens. */
export const hostPort = 8081;

/** Path of a host's network namespace. */
export function netnsOf(host: LabHost): string {
  return `/run/netns/${host.namespace}`;
}

/** A site with a wire path of each family on the node under test, over maps of the tests' own. */
export class WireSite implements AsyncDisposable {
  readonly site: Site;
  readonly maps: Readonly<Record<IpFamily, WireMaps>> = { IPv4: new WireMaps(), IPv6: new WireMaps() };
  /** The maps that paths of a family use. */
  readonly openMaps: Readonly<Record<IpFamily, OpenMapSet>> = { IPv4: new OpenMapSet(), IPv6: new OpenMapSet() };

  private constructor(site: Site) {
    this.site = site;
    for (const family of ipFamilies) this.openMaps[family].set(this.maps[family].maps);
  }

  static async create(name: string): Promise<WireSite> {
    const site = await createSite(name, signal);
    startEchoServer(site.node, { pod: 'host', tcp: [hostPort], udp: [hostPort] });
    await awaitEcho(site.self, site.node, hostPort, signal);
    return new WireSite(site);
  }

  get node(): LabNode {
    return this.site.node;
  }

  /** Another process, so to speak: it knows nothing of those before. */
  open(ipFamily: IpFamily, more: Partial<WirePathOptions> = {}): WirePath {
    return new WirePath({
      ipFamily,
      netns: netnsOf(this.node),
      logger: noopLogger,
      maps: this.openMaps[ipFamily],
      clock: systemClock,
      isUsed: async () => true,
      pinFolder: this.pinFolder(ipFamily),
      interfaces: [],
      ...more,
    });
  }

  pinFolder(ipFamily: IpFamily): string {
    return `${this.node.bpffsPath}/switchyard/v1-${ipFamily.toLowerCase()}/links`;
  }

  async nft(...args: readonly string[]): Promise<string> {
    const result = await this.node.run('nft', args);
    expect(result.exitCode, result.stderr).toBe(0);
    return result.stdout;
  }

  async ip(...args: readonly string[]): Promise<string> {
    const result = await this.node.run('ip', args);
    expect(result.exitCode, result.stderr).toBe(0);
    return result.stdout;
  }

  indexOf(device: string): number {
    using socket = openNetlinkSocket({ protocol: 'route', netns: netnsOf(this.node) });
    const found = new DeviceReader(socket).devices().find(({ name }) => name === device);
    if (found === undefined) throw new Error(`no device ${device}`);
    return found.index;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const family of ipFamilies) this.maps[family][Symbol.dispose]();
    await this.site[Symbol.asyncDispose]();
  }
}
