import { readdir, readFile } from 'node:fs/promises';

/** Everything by which lab `name` can be seen on this machine: empty when it is gone. */
export async function labTraces(name: string): Promise<readonly string[]> {
  const folders = [
    '/run/netns',
    '/run/switchyard',
    '/var/tmp/switchyard-labs',
    '/sys/fs/cgroup/unified',
    '/sys/fs/cgroup',
  ];
  const lists = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])));
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
  const names = new Set([name, `swy-${name}`, `daemon-${name}.log`]);
  return [
    ...lists.flat().filter((entry) => names.has(entry) || entry.startsWith(`swy-${name}-`)),
    ...mounts.filter((line) => line.includes(`/${name}/`) || line.includes(`swy-${name}-`)),
  ];
}
