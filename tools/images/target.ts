import type { DebianArchitecture } from '../debian/debian-root.ts';

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
