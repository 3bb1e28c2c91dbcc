import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { HostError, millis, type Millis, systemClock, UsageError } from '@switchyard/core';
import { findCgroup2Mount, killCgroup, removeCgroup } from '../cgroup.ts';
import type { Lab, LabCommandOptions, LabCommandResult, LabHost, LabProcess } from '../lab.ts';
import { checkHostName, labsRoot } from '../names.ts';
import { runProgram } from '../run-program.ts';

/** Debian packages of a Docker Engine, and dependencies that a lab does not need; for `tools/debian`. */
export const dockerPackages: { readonly packages: readonly string[]; readonly exclude: readonly string[] } = {
  packages: ['docker.io'],
  exclude:
    'adduser debconf dpkg init-system-helpers libc6 lsb-base netbase passwd perl perl-base systemd sysvinit-utils udev'.split(
      ' ',
    ),
};

/** Lab, host and programs of a Docker Engine. */
export interface DockerEngineOptions {
  readonly lab: Lab;
  /** `docker run --network host` is this host's network. The engine ends with the lab, also if the lab is removed after a crash. */
  readonly host: LabHost;
  /** Folder in which `dockerPackages` are unpacked. */
  readonly programs: string;
}

/**
 * A real Docker Engine of a lab. Its containers have the host's network, none, or one made with `docker network create`: a bridge
 * in the lab host, reachable from there. It never programs rules: there is no default bridge, no masquerading and no isolation,
 * and a process forwards published ports. Disposing it kills its containers and removes its data. */
export interface DockerEngine extends AsyncDisposable {
  /** Path of the API's unix socket. */
  readonly socket: string;
  /** The engine's main process, with this machine's pid. `restart` changes it. */
  readonly pid: number;
  /** For example `20.10.24+dfsg1`. */
  readonly version: string;
  readonly logFile: string;
  /** Path of the Docker CLI and its environment for this engine, for tools that run it. */
  readonly command: { readonly file: string; readonly env: Readonly<Record<string, string>> };
  /** Runs the Docker CLI of the same version. A non-zero exit is a result; the time limit is 60 s unless given. */
  cli(args: readonly string[], options?: LabCommandOptions): Promise<LabCommandResult>;
  /**
   * The processes of a running container, named or by id, with this machine's process ids; Docker itself reports those of
   * its own process namespace. Empty if it does not run.
   */
  pidsOf(container: string): Promise<readonly number[]>;
  /**
   * Restarts the engine as `systemctl restart docker` does: it stops containers, ends, starts again with its stored state, and
   * starts containers that have a restart policy. `isKilled`: ends by SIGKILL. Resolves when it answers again.
   */
  restart(options: { readonly isKilled: boolean }, signal: AbortSignal): Promise<void>;
}

/** Docker's defaults without 172.17.0.0/16, the default bridge's network elsewhere: the first network without a subnet gets 172.18.0.0/16. */
const addressPools = [
  { base: '172.18.0.0/15', size: 16 },
  { base: '172.20.0.0/14', size: 16 },
] as const;
const startLimit = millis(30_000);
const commandLimit = millis(60_000);
/** Docker's own default for containers is 10 s. */
const endLimit = millis(20_000);

/**
 * Starts a Docker Engine inside a lab host and waits until it answers. It changes nothing else on this machine: see
 * `engineScript`. One engine per host. Rejects with the end of its log when it does not come up within 30 s.
 */
export async function startDockerEngine(options: DockerEngineOptions, signal: AbortSignal): Promise<DockerEngine> {
  const { lab, host, programs } = options;
  checkHostName(host.name);
  if (/['\n]/.test(programs)) throw new UsageError('docker.programs', `not a usable folder: ${programs}`);
  const cgroupMount = await findCgroup2Mount();
  if (cgroupMount === undefined) {
    throw new HostError('docker.cgroup', 'a Docker Engine needs cgroup v2, and none is mounted on this machine');
  }
  const data = `${lab.diskFolder}/docker-${host.name}`;
  await mkdir(`${data}/cli`, { recursive: true, mode: 0o700 });
  await writeFile(`${data}/first-process`, firstProcessScript);
  await writeFile(`${data}/daemon.json`, JSON.stringify(await settings(data)));
  const script = engineScript({ cgroupMount, data, programs });
  const start = (): LabProcess => host.spawn('sh', ['-c', script], { logName: 'docker' });
  const engine: StartedEngine = { host, running: start(), data, programs, cgroup: undefined };
  try {
    const version = await untilAnswering(engine, signal);
    engine.cgroup = await engineCgroup(engine.running.pid, cgroupMount);
    return {
      socket: socketPath(data),
      get pid() {
        return engine.running.pid;
      },
      version,
      get logFile() {
        return engine.running.logFile;
      },
      command: cliCommand(engine),
      cli: (args, commandOptions) => runCli(engine, args, commandOptions),
      pidsOf: (container) => containerPids(engine, container),
      restart: async ({ isKilled }, inner) => {
        await (isKilled ? killAll(engine) : endGently(engine));
        engine.running = start();
        await untilAnswering(engine, inner);
      },
      [Symbol.asyncDispose]: () => stop(engine),
    };
  } catch (error) {
    await stop(engine);
    throw error;
  }
}

/** The engine's own configuration file. Also writes a replacement of runc if this machine's root lacks capabilities. */
async function settings(data: string): Promise<Readonly<Record<string, unknown>>> {
  const lacking = lackingCapabilities(await readFile('/proc/self/status', 'utf8'));
  const pools = { 'default-address-pools': addressPools };
  if (lacking.length === 0) return pools;
  const path = `${data}/runtime`;
  await writeFile(path, runtimeWithout(lacking), { mode: 0o755 });
  return { ...pools, runtimes: { lab: { path } }, 'default-runtime': 'lab' };
}

interface StartedEngine {
  readonly host: LabHost;
  running: LabProcess;
  readonly data: string;
  readonly programs: string;
  /** Absolute path of the engine's cgroup; undefined while it is not known. */
  cgroup: string | undefined;
}

function cliCommand({ data, programs }: StartedEngine): DockerEngine['command'] {
  return {
    file: `${programs}/usr/bin/docker`,
    env: { DOCKER_HOST: `unix://${socketPath(data)}`, DOCKER_CONFIG: `${data}/cli`, DOCKER_BUILDKIT: '0' },
  };
}

function runCli(
  engine: StartedEngine,
  args: readonly string[],
  options: LabCommandOptions = {},
): Promise<LabCommandResult> {
  const { file, env } = cliCommand(engine);
  return runProgram(file, args, { timeout: commandLimit, ...options, env: { ...env, ...options.env } });
}

/** The engine's version, when it answers. */
async function untilAnswering(engine: StartedEngine, signal: AbortSignal): Promise<string> {
  const deadline = Date.now() + startLimit;
  const info = ['info', '--format', '{{.ServerVersion}}'];
  let ended: number | string | undefined;
  void engine.running.ended.then((how) => (ended = how));
  for (;;) {
    signal.throwIfAborted();
    const { exitCode, stdout, stderr } = await runCli(engine, info);
    const version = stdout.trim();
    if (exitCode === 0 && version !== '') return version;
    if (ended !== undefined || Date.now() > deadline) {
      const what = ended === undefined ? `does not answer after ${startLimit / 1000} s` : `ended with ${ended}`;
      throw new HostError('docker.start', `the Docker Engine ${what}: ${stderr.trim()}\n${await logTail(engine)}`);
    }
    await systemClock.sleep(pollInterval, signal);
  }
}

const pollInterval: Millis = millis(100);

async function logTail(engine: StartedEngine): Promise<string> {
  const log = await readFile(engine.running.logFile, 'utf8').catch(() => '');
  return log.trim().split('\n').slice(-15).join('\n');
}

/** The spawned process sits in the folder `engine` of the engine's cgroup. */
async function engineCgroup(pid: number, mount: string): Promise<string> {
  const text = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  const path = /^0::(.*)\/engine$/m.exec(text)?.[1];
  if (path !== undefined) return `${mount}${path}`;
  throw new HostError(
    'docker.cgroup',
    `the Docker Engine is not in the cgroup it was put into, but in: ${text.trim()}`,
  );
}

async function containerPids(engine: StartedEngine, container: string): Promise<readonly number[]> {
  const { stdout } = await runCli(engine, ['inspect', '--format', '{{.Id}}', container]);
  const procs = await readFile(`${engine.cgroup}/docker/${stdout.trim()}/cgroup.procs`, 'utf8').catch(() => '');
  return procs.split('\n').filter(Boolean).map(Number);
}

/** Kills the engine and its containers at once. */
async function killAll({ running, cgroup }: StartedEngine): Promise<void> {
  if (cgroup !== undefined) await killCgroup(cgroup);
  await running.stop(millis(0));
}

/** Ends the engine as an init system does: SIGTERM to dockerd, which stops the containers first. */
async function endGently(engine: StartedEngine): Promise<void> {
  const procs = await readFile(`${engine.cgroup}/engine/cgroup.procs`, 'utf8');
  for (const pid of procs.split('\n').filter(Boolean).map(Number)) {
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    if (name === 'dockerd\n') process.kill(pid, 'SIGTERM');
  }
  const waiting = new AbortController();
  const limit = systemClock.sleep(endLimit, waiting.signal).catch(() => undefined);
  await Promise.race([engine.running.ended, limit]);
  waiting.abort();
  await killAll(engine);
}

/** Kills the engine and removes its data. */
async function stop(engine: StartedEngine): Promise<void> {
  const { host, data, cgroup } = engine;
  await killAll(engine);
  const links = (await host.run('ip', ['-o', 'link', 'show', 'type', 'bridge'])).stdout;
  for (const [, bridge = ''] of links.matchAll(/^\d+: (br-[0-9a-f]{12}):/gm)) {
    await host.run('ip', ['link', 'delete', bridge]);
  }
  if (cgroup !== undefined) await removeCgroup(cgroup);
  await rm(data, { recursive: true, force: true, maxRetries: 5 });
}

/** The engine's socket, seen by the engine and by this machine under the same path. */
function socketPath(data: string): string {
  return `${data}/docker.sock`;
}

/**
 * Returns a POSIX shell script that becomes a Docker Engine. Its paths are absolute and contain no single quote. It can change only `data` on this machine: it runs in its own
 * namespaces for cgroups, mounts, processes, IPC and host name, and in the network namespace it is started in. When the
 * first process ends, the kernel ends all containers and removes all mounts.
 *
 * - Of /run it can access only the labs' folder.
 * - Its cgroup root is a folder below the caller's cgroup; it sits in a folder beside the containers', since cgroup v2
 *   hands controllers only to cgroups without processes.
 * - /proc/sys is read-only, but for the network namespace's own part: dockerd raises the machine's key quota otherwise. AppArmor is hidden, or dockerd would load a
 *   profile into the kernel. `modprobe` does nothing.
 */
function engineScript({
  cgroupMount,
  data,
  programs,
}: Readonly<Record<'cgroupMount' | 'data' | 'programs', string>>): string {
  return `set -eu
own='${cgroupMount}'$(sed -n 's/^0:://p' /proc/self/cgroup)/docker
mkdir -p "$own/engine"
echo 0 >"$own/cgroup.procs"
export own data='${data}' programs='${programs}' shared='${labsRoot}'
exec unshare --cgroup -- sh -euc '
  echo 0 >"$own/engine/cgroup.procs"
  exec unshare --mount --propagation private --pid --fork --kill-child --ipc --uts -- sh -eu "$data/first-process"
'
`;
}

/** The script of the engine's process 1: arranges mounts and programs, then becomes \`tini\` with dockerd as its child. */
const firstProcessScript: string = `mount -t proc proc /proc
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

const tag = 'switchyard/empty:1';

/**
 * Returns the name of an image without files, which needs no registry; creates it if it is missing. Its containers get their
 * programs from `machinePrograms`.
 */
export async function emptyImage(engine: DockerEngine): Promise<string> {
  if ((await engine.cli(['image', 'inspect', tag])).exitCode === 0) return tag;
  const { exitCode, stderr } = await engine.cli(['import', '-', tag], { stdin: '\0'.repeat(1024) });
  if (exitCode === 0) return tag;
  throw new HostError('docker.image', `docker import of an empty image ended with ${exitCode}: ${stderr.trim()}`);
}

/** Options of `docker run` that give a container this machine's programs, read-only, and this process's Node as `/node`. */
export const machinePrograms: readonly string[] = [
  ...['/usr', '/bin', '/lib', '/lib64'].filter((path) => existsSync(path)).map((path) => `${path}:${path}:ro`),
  `${process.execPath}:/node:ro`,
].flatMap((volume) => ['--volume', volume]);
