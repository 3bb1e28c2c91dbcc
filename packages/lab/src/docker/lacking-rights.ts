/** By number, as in linux/capability.h of Linux 5.9 and newer. */
const capabilities =
  `CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST
NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`.split(/\s/);

/** Returns the capabilities that a process can never have (`CAP_SYS_RESOURCE`), from its /proc/PID/status. Empty outside containers. */
export function lackingCapabilities(status: string): readonly string[] {
  const bounding = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? 'ffffffffffffffff'}`);
  return capabilities.filter((_, bit) => ((bounding >> BigInt(bit)) & 1n) === 0n).map((name) => `CAP_${name}`);
}

/**
 * A POSIX shell script that replaces runc and gives containers all other capabilities. For engines that run in a
 * container: `--privileged` requests every capability, and runc fails at the first unavailable one.
 */
export function runtimeWithout(lacking: readonly string[]): string {
  const names = `"(${lacking.join('|')})"`;
  return `#!/bin/sh
set -eu
option=
for argument; do
  case $option in
    --bundle) sed -i -E 's/${names},//g; s/,${names}//g; s/\\[${names}\\]/[]/g' "$argument/config.json" ;;
    --process) sed -i -E 's/${names},//g; s/,${names}//g; s/\\[${names}\\]/[]/g' "$argument" ;;
  esac
  option=$argument
done
exec runc "$@"
`;
}
