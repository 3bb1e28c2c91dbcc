import type { DebianArchitecture } from '../debian/debian-root.ts';

/** Programs out of Debian packages, with all libraries of those. */
export interface DebianPrograms {
  readonly packages: readonly string[];
  /** Packages that they do without, beside what every base brings. */
  readonly exclude: readonly string[];
  /** The files of `/usr/sbin` and `/usr/bin`, `/sbin` and `/bin` that are wanted. */
  readonly programs: RegExp;
}

export type LayerContent =
  | { readonly kind: 'debian'; readonly of: DebianPrograms }
  | { readonly kind: 'node' }
  /** An app's bundle, with the native addon and launchers if it has any. */
  | { readonly kind: 'app'; readonly app: AppName }
  /** Files that the agent's ebpf mode needs beside its bundle. */
  | { readonly kind: 'ebpf' }
  /** The configuration with which a load balancer begins. */
  | { readonly kind: 'haproxyBase' }
  /** An empty folder, whose owner the Dockerfile sets. */
  | { readonly kind: 'empty' };

export type AppName = 'node-agent' | 'kind-lb-controller' | 'conformance';

export interface ImageDefinition {
  /** Folder below `images` with its Dockerfile. */
  readonly dockerfile: string;
  /** App whose version the image has. */
  readonly app: AppName;
  readonly args: Readonly<Record<string, string>>;
  /** By the folder of the build context that its Dockerfile copies, from the bottom up. */
  readonly layers: Readonly<Record<string, LayerContent>>;
}

const node: LayerContent = { kind: 'node' };
/** For the same packages equal content: layers that images share. */
const agentLayers = {
  node,
  programs: {
    kind: 'debian',
    of: {
      // Every image has iptables: it removes the rules that another mode or kube-proxy left. iptables in
      // both variants, because a node may use either.
      packages: ['iptables'],
      exclude: [],
      programs: /^(xtables-(nft|legacy)-multi|ip6?tables-(nft|legacy)(-save|-restore)?)$/,
    },
  },
  agent: { kind: 'app', app: 'node-agent' },
} as const satisfies ImageDefinition['layers'];
const loadBalancerLayers = {
  node,
  programs: {
    kind: 'debian',
    of: {
      packages: ['haproxy', 'nftables', 'iproute2', 'coreutils'],
      exclude:
        'adduser debconf dpkg init-system-helpers libacl1 libattr1 libcap2-bin libdb5.3 libselinux1 libtirpc3 lsb-base sysvinit-utils'.split(
          ' ',
        ),
      programs: /^(haproxy|nft|ip|cat|tee)$/,
    },
  },
  settings: { kind: 'haproxyBase' },
  run: { kind: 'empty' },
  controller: { kind: 'app', app: 'kind-lb-controller' },
} as const satisfies ImageDefinition['layers'];

/** All images that are built here, by name: `switchyard/<name>` is what they are called. */
export const images = {
  'agent-nftables': { dockerfile: 'agent', app: 'node-agent', args: { BACKEND: 'nftables' }, layers: agentLayers },
  'agent-iptables': { dockerfile: 'agent', app: 'node-agent', args: { BACKEND: 'iptables' }, layers: agentLayers },
  'agent-ebpf': {
    dockerfile: 'agent-ebpf',
    app: 'node-agent',
    args: { BACKEND: 'ebpf' },
    layers: { ...agentLayers, ebpf: { kind: 'ebpf' } },
  },
  'load-balancer': {
    dockerfile: 'load-balancer',
    app: 'kind-lb-controller',
    args: {},
    layers: loadBalancerLayers,
  },
  'kind-lb-controller': {
    dockerfile: 'kind-lb-controller',
    app: 'kind-lb-controller',
    args: {},
    layers: {
      ...loadBalancerLayers,
      docker: {
        kind: 'debian',
        of: {
          packages: ['docker.io'],
          exclude:
            'adduser containerd debconf init-system-helpers iptables libdevmapper1.02.1 libsystemd0 lsb-base runc sysvinit-utils tini'.split(
              ' ',
            ),
          programs: /^docker$/,
        },
      },
    },
  },
  conformance: {
    dockerfile: 'conformance',
    app: 'conformance',
    args: {},
    layers: { node, pod: { kind: 'app', app: 'conformance' } },
  },
} as const satisfies Readonly<Record<string, ImageDefinition>>;

export type ImageName = keyof typeof images;

/** Dataplane backends that have an image of the node agent. */
export const agentBackends = ['nftables', 'iptables', 'ebpf'] as const;

export function isImageName(name: string): name is ImageName {
  return Object.hasOwn(images, name);
}

/** Names of an architecture in various tools. This project uses Debian's name, as Docker does. */
export interface Target {
  readonly architecture: DebianArchitecture;
  /** `process.arch` there, and in names of npm packages. */
  readonly node: 'x64' | 'arm64';
  /** GNU's triplet: folders of libraries, names of cross compilers. */
  readonly triplet: string;
  /** Debian package of the compiler that makes programs for it elsewhere. */
  readonly crossCompiler: string;
  /** `e_machine` of its ELF files. */
  readonly elfMachine: number;
  /** Suffix of qemu's user-mode emulators. */
  readonly qemu: string;
}

/** All architectures that images are built for. */
export const targets: Readonly<Record<DebianArchitecture, Target>> = {
  amd64: {
    architecture: 'amd64',
    node: 'x64',
    triplet: 'x86_64-linux-gnu',
    crossCompiler: 'g++-x86-64-linux-gnu',
    elfMachine: 62,
    qemu: 'x86_64',
  },
  arm64: {
    architecture: 'arm64',
    node: 'arm64',
    triplet: 'aarch64-linux-gnu',
    crossCompiler: 'g++-aarch64-linux-gnu',
    elfMachine: 183,
    qemu: 'aarch64',
  },
};
