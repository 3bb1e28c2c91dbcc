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
 * One entry, and one folder `images/agent-<backend>`, per backend. iptables is in all of them: it removes what kube-proxy
 * has left, and needs both variants because kube-proxy may have used either.
 */
export const imageBackends = {
  nftables: {
    packages: ['nftables', 'iptables'],
    programs: /^(nft|xtables-(nft|legacy)-multi|ip6?tables-(nft|legacy)(-save|-restore)?)$/,
  },
} as const satisfies Readonly<Record<string, BackendImage>>;

/** Whether a text names a backend that has an image. */
export function isImageBackend(name: string): name is ImageBackend {
  return Object.hasOwn(imageBackends, name);
}
