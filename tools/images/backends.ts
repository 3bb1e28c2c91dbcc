/** Dataplane backends that have an image. */
export type ImageBackend = keyof typeof imageBackends;

/** What a backend's image has of its own. */
export interface BackendImage {
  /** Debian packages with the programs it runs. */
  readonly packages: readonly string[];
  /** The files of `/usr/sbin` and `/usr/bin` that are wanted; with them come all libraries. */
  readonly programs: RegExp;
}

/**
 * Whatever forwards, the other's programs are there too: they remove what it, or kube-proxy, has left. iptables in both
 * variants, because a node may use either. Equal programs are one layer, which images share.
 */
const programs = {
  packages: ['nftables', 'iptables'],
  programs: /^(nft|xtables-(nft|legacy)-multi|ip6?tables-(nft|legacy)(-save|-restore)?)$/,
} as const;

/** One entry, and one folder `images/agent-<backend>`, per backend. */
export const imageBackends = {
  nftables: programs,
  iptables: programs,
} as const satisfies Readonly<Record<string, BackendImage>>;

/** Whether a text names a backend that has an image. */
export function isImageBackend(name: string): name is ImageBackend {
  return Object.hasOwn(imageBackends, name);
}
