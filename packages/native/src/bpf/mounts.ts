import { existsSync, mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { NativeError } from '../native-error.ts';
import { loadBpfAddon } from './bpf-addon.ts';

/** f_type of file systems, of linux/magic.h. */
const magics = { bpffs: 0xca_fe_4a_11, cgroup2: 0x63_67_72_70 } as const;

/** Makes the folder and mounts a bpffs there, unless there is one. Returns whether it mounted one. Throws `NativeError`. */
export function mountBpffs(path: string): boolean {
  makeFolder(path);
  if (isBpffs(path)) return false;
  const result = loadBpfAddon().mountBpffs(path);
  if (result === 0) return true;
  throw new NativeError(
    `cannot mount a bpffs at ${path}`,
    { errno: -result, syscall: 'mount' },
    'the process needs CAP_SYS_ADMIN; or mount it beforehand',
  );
}

/** Makes one folder after the other: Node's `recursive` never ends where the kernel answers ENOENT to each (/proc). */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    if (existsSync(path)) return; // another process made it
    const { errno = 0 } = error as NodeJS.ErrnoException; // negative
    throw new NativeError(
      `cannot make the folder ${path}, to mount a bpffs`,
      { errno: -errno, syscall: 'mkdir' },
      'name a folder where one is mounted, or can be; below /sys the kernel itself makes /sys/fs/bpf, if it has a bpffs',
    );
  }
}

/** Whether a folder is in a bpffs; false for one that is not there. */
export function isBpffs(path: string): boolean {
  return isOn(path, magics.bpffs);
}

/** Whether a folder is in a cgroup2 mount; false for one that is not there. */
export function isCgroup2(path: string): boolean {
  return isOn(path, magics.cgroup2);
}

function isOn(path: string, magic: number): boolean {
  try {
    return statfsSync(path).type === magic;
  } catch {
    return false;
  }
}

/** Where the first file system of a type is mounted, such as `cgroup2`; undefined when none is. */
export function findMount(type: string): string | undefined {
  return mountOf(type, readFileSync('/proc/self/mountinfo', 'utf8'));
}

/** As `findMount`, of the text of /proc/PID/mountinfo. Spaces in paths are written there as `\040`. */
export function mountOf(type: string, mountInfo: string): string | undefined {
  for (const line of mountInfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ');
    if (source.split(' ')[0] !== type) continue;
    return mount
      .split(' ')[4]
      ?.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  }
  return undefined;
}
