/** Parameters of the engine's shell script. All paths are absolute and contain no single quote. */
export interface EngineScriptOptions {
  /** Mount point of cgroup v2 on this machine. */
  readonly cgroupMount: string;
  /** Name of the engine's cgroup below the one it is started in. */
  readonly cgroup: string;
  /** Folder on disk for images, containers and the socket. */
  readonly data: string;
  /** Folder with the unpacked docker.io package. */
  readonly programs: string;
  /** Folder below /run that the engine and its containers' volumes can access. The rest of /run is hidden. */
  readonly shared: string;
}

/** The engine's socket, seen by the engine and by this machine under the same path. */
export function socketPath(data: string): string {
  return `${data}/docker.sock`;
}

/**
 * Returns a POSIX shell script that becomes a Docker Engine. It can change only `data` on this machine: it runs in its own
 * namespaces for cgroups, mounts, processes, IPC and host name, and in the network namespace it is started in. When the
 * first process ends, the kernel ends all containers and removes all mounts.
 *
 * - Its cgroup root is a folder below the caller's cgroup; it sits in a folder beside the containers', since cgroup v2
 *   hands controllers only to cgroups without processes.
 * - /proc/sys is read-only, but for the network namespace's own part: dockerd raises the machine's key quota otherwise. AppArmor is hidden, or dockerd would load a
 *   profile into the kernel. `modprobe` does nothing.
 */
export function engineScript(options: EngineScriptOptions): string {
  const { cgroupMount, cgroup, data, programs, shared } = options;
  return `set -eu
own='${cgroupMount}'$(sed -n 's/^0:://p' /proc/self/cgroup)/'${cgroup}'
mkdir -p "$own/engine"
echo 0 >"$own/cgroup.procs"
export own data='${data}' programs='${programs}' shared='${shared}'
exec unshare --cgroup -- sh -euc '
  echo 0 >"$own/engine/cgroup.procs"
  exec unshare --mount --propagation private --pid --fork --kill-child --ipc --uts -- sh -eu "$data/first-process"
'
`;
}

/** The script of the engine's process 1: arranges mounts and programs, then becomes \`tini\` with dockerd as its child. */
export const firstProcessScript: string = `mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,ro,bind /proc/sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
[ ! -d /sys/kernel/security ] || mount -t tmpfs tmpfs /sys/kernel/security
mkdir -p "$data/run" "$data/bin" "$data/probe/lower" "$data/probe/upper" "$data/probe/work" "$data/probe/merged"
mount -t tmpfs -o mode=755 tmpfs "$data/run"
mkdir -p "$data$shared"
mount --rbind "$shared" "$data$shared"
mount --rbind "$data/run" /run
ln -sf /bin/true "$data/bin/modprobe"
driver=vfs
probe=$data/probe
if mount -t overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" overlay "$probe/merged" 2>/dev/null; then
  umount "$probe/merged"
  driver=overlay2
fi
hostname docker
libraries=$(dirname "$(ls "$programs"/usr/lib/*/libseccomp.so.2)")
export PATH="$data/bin:$programs/usr/sbin:$programs/usr/bin:$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
export LD_LIBRARY_PATH="$libraries:$programs/lib/\${libraries##*/}"
export TMPDIR="$data/tmp" DOCKER_TMPDIR="$data/tmp"
mkdir -p "$data/tmp"
exec tini-static -s -- dockerd --host "unix://$data/docker.sock" --config-file "$data/daemon.json" \\
  --data-root "$data/root" --exec-root /run/docker --pidfile /run/docker.pid --group 0 \\
  --storage-driver "$driver" --exec-opt native.cgroupdriver=cgroupfs --oom-score-adjust 0 \\
  --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --userland-proxy=true --userland-proxy-path "$programs/usr/sbin/docker-proxy"
`;
