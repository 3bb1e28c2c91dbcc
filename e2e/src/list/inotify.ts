import { readdir, readFile, readlink } from 'node:fs/promises';

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
