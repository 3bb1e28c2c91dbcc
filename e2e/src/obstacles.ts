import { readdir, readFile, readlink } from 'node:fs/promises';
import { messageOf, type Millis, seconds } from '@switchyard/core';
import { type Cell, nodeNames } from './cell.ts';
import { type Matrix, nodeImageOf, upstreamImageOf } from './matrix.ts';
import type { CellCommand, Shell } from './run/shell.ts';

/** Reasons why cells cannot run on this machine. */
export interface Obstacles {
  /** Obstacles of every kind cell. */
  readonly common: readonly string[];
  readonly byVersion: ReadonlyMap<string, readonly string[]>;
  readonly lab: readonly string[];
}

/** Facts about this machine that no program reports. */
export interface MachineFacts {
  readonly platform: string;
  readonly isRoot: boolean;
  /** Use of inotify on the machine whose kernel runs the engine's containers; undefined: unknown. */
  readonly inotify: InotifyUse | undefined;
}

const quick: Millis = seconds(30);

export interface ObstacleSearch {
  readonly matrix: Matrix;
  readonly shell: Shell;
  readonly machine: MachineFacts;
  /** Upstream's tests are to run, which need an image of their own. */
  readonly hasUpstream: boolean;
  /** The pages' commands run, of which some are Helm's. */
  readonly hasHelm: boolean;
}

/** Looks for the obstacles of all cells at once. Looks for images only if there is an engine to pull them. */
export async function findObstacles(
  { matrix, shell, machine, hasUpstream, hasHelm }: ObstacleSearch,
  signal: AbortSignal,
): Promise<Obstacles> {
  const [engine, kind, kubectl, helm] = await Promise.all([
    engineObstacles(shell, signal),
    kindObstacles(shell, matrix.kind, signal),
    programObstacle(shell, { file: 'kubectl', args: ['version', '--client'] }, signal),
    hasHelm ? programObstacle(shell, { file: 'helm', args: ['version', '--short'] }, signal) : [],
  ]);
  const byVersion = new Map<string, readonly string[]>();
  for (const release of matrix.kubernetes) {
    const images = [nodeImageOf(release), ...(hasUpstream ? [upstreamImageOf(release)] : [])];
    byVersion.set(release.version, engine.length > 0 ? [] : await imageObstacles(shell, images, signal));
  }
  const inotify = inotifyObstacle(machine.inotify, nodeNames('').length);
  return { common: [...engine, ...kind, ...kubectl, ...helm, ...inotify], byVersion, lab: labObstacles(machine) };
}

/** Reasons why this cell cannot run here; empty: it can. */
export function obstaclesOf(cell: Cell, { common, byVersion }: Obstacles): readonly string[] {
  return [...common, ...(byVersion.get(cell.kubernetes) ?? [])];
}

function labObstacles({ platform, isRoot }: MachineFacts): readonly string[] {
  if (platform !== 'linux') return [`a lab is made of Linux network namespaces, and this is ${platform}`];
  return isRoot ? [] : ['a lab needs root: sudo ./dev e2e'];
}

async function engineObstacles(shell: Shell, signal: AbortSignal): Promise<readonly string[]> {
  const format = '{{.ServerVersion}} {{.CgroupVersion}}';
  const result = await ask(shell, { file: 'docker', args: ['info', '--format', format] }, signal);
  if (typeof result === 'string') return [result];
  const [version = '', cgroup = ''] = result.stdout.trim().split(' ');
  // Without an engine the CLI exits with 0 and prints a message instead of a version.
  if (result.exitCode !== 0 || !/^\d/.test(version)) {
    const said = result.stderr.trim().split('\n').at(-1) ?? '';
    return [`no container engine answers docker info: ${said === '' ? 'it says nothing' : said}`];
  }
  return cgroup === '2' ? [] : [`the engine uses cgroup v${cgroup || '1'}; kubelets from 1.35 on want v2`];
}

async function kindObstacles(shell: Shell, oldest: string, signal: AbortSignal): Promise<readonly string[]> {
  const result = await ask(shell, { file: 'kind', args: ['version', '--quiet'] }, signal);
  if (typeof result === 'string')
    return [`${result} (release ${oldest}: https://kind.sigs.k8s.io/docs/user/quick-start/)`];
  const [version] = /\d+\.\d+\.\d+/.exec(result.stdout) ?? [];
  if (version === undefined) return [`kind version says ${JSON.stringify(result.stdout.trim())}, which is no version`];
  const isOld = version.localeCompare(oldest, 'en', { numeric: true }) < 0;
  return isOld ? [`kind is ${version}, and the node images were made for ${oldest}: install that release`] : [];
}

async function programObstacle(
  shell: Shell,
  command: Omit<CellCommand, 'timeout'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const result = await ask(shell, command, signal);
  if (typeof result === 'string') return [result];
  return result.exitCode === 0 ? [] : [`${command.file} ends with ${result.exitCode}: ${result.stderr.trim()}`];
}

async function imageObstacles(
  shell: Shell,
  images: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await Promise.all(images.map((image) => imageObstacle(shell, image, signal)));
  return found.flat();
}

/** Either the engine has it, or a registry does. */
async function imageObstacle(shell: Shell, image: string, signal: AbortSignal): Promise<readonly string[]> {
  const local = await ask(shell, { file: 'docker', args: ['image', 'inspect', '--format', '{{.Id}}', image] }, signal);
  if (typeof local !== 'string' && local.exitCode === 0) return [];
  const remote = await ask(shell, { file: 'docker', args: ['manifest', 'inspect', image] }, signal);
  if (typeof remote === 'string') return [remote];
  if (remote.exitCode === 0) return [];
  return [
    `${image} is not in the engine and cannot be pulled: ${lastLine(remote.stderr)}; ` +
      'docker load --input FILE brings an image, --node-image or --upstream-image NAME takes another one',
  ];
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

/** The result, or why the program could not be run. */
async function ask(
  shell: Shell,
  command: Omit<CellCommand, 'timeout'>,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<Shell['run']>> | string> {
  try {
    return await shell.run({ ...command, timeout: quick }, signal);
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** The machine's limit on inotify instances of one user: all nodes of all kind clusters share root's. */
export interface InotifyUse {
  readonly limit: number;
  /** Number of root's open instances; undefined where other users' processes cannot be inspected. */
  readonly used: number | undefined;
}

/** systemd, containerd, kubelet and the pods of one node; six nodes exhaust Linux' default of 128. */
const perNode = 21;
/** Value that kind's documentation recommends. */
const advised = 512;

/** Reads the limit and counts what is used. Undefined where there is no such limit. */
export async function readInotify(isRoot: boolean, proc = '/proc'): Promise<InotifyUse | undefined> {
  const text = await readFile(`${proc}/sys/fs/inotify/max_user_instances`, 'utf8').catch(() => '');
  const limit = Number.parseInt(text, 10);
  if (Number.isNaN(limit)) return undefined;
  return { limit, used: isRoot ? await countInstances(proc) : undefined };
}

/** Reason why the nodes of a cluster would not start, where kubeadm only reports a timeout of the kubelet. */
export function inotifyObstacle(use: InotifyUse | undefined, nodes: number): readonly string[] {
  if (use === undefined) return [];
  const { limit, used } = use;
  const needed = nodes * perNode;
  if (limit - (used ?? 0) >= needed) return [];
  const taken = used === undefined ? '' : `, of which ${used} are in use`;
  return [
    `fs.inotify.max_user_instances is ${limit}${taken}; ${nodes} nodes need about ${needed}: ` +
      `sudo sysctl fs.inotify.max_user_instances=${advised}`,
  ];
}

/** Processes that end meanwhile are passed over. */
async function countInstances(proc: string): Promise<number> {
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
  let count = 0;
  for (const pid of pids) {
    const status = await readFile(`${proc}/${pid}/status`, 'utf8').catch(() => '');
    if (!/^Uid:\s+0\b/m.test(status)) continue;
    const fds = await readdir(`${proc}/${pid}/fd`).catch(() => []);
    const links = await Promise.all(fds.map((fd) => readlink(`${proc}/${pid}/fd/${fd}`).catch(() => '')));
    count += links.filter((link) => link === 'anon_inode:inotify').length;
  }
  return count;
}
