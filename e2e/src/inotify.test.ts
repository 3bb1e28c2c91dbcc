import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inotifyObstacle, readInotify } from './obstacles.ts';

let proc: string;

beforeEach(async () => {
  proc = await mkdtemp(join(tmpdir(), 'swy-e2e-proc-'));
});
afterEach(() => rm(proc, { recursive: true, force: true }));

async function addProcess(pid: number, uid: number, links: readonly string[]): Promise<void> {
  await mkdir(`${proc}/${pid}/fd`, { recursive: true });
  await writeFile(`${proc}/${pid}/status`, `Name:\tx\nUid:\t${uid}\t${uid}\t${uid}\t${uid}\n`);
  for (const [index, link] of links.entries()) await symlink(link, `${proc}/${pid}/fd/${index}`);
}

describe('inotify instances', () => {
  test("are counted for root's processes, from what their descriptors are", async () => {
    await mkdir(`${proc}/sys/fs/inotify`, { recursive: true });
    await writeFile(`${proc}/sys/fs/inotify/max_user_instances`, '128\n');
    await addProcess(1, 0, ['anon_inode:inotify', '/dev/null', 'anon_inode:inotify']);
    await addProcess(7, 0, ['anon_inode:inotify', 'anon_inode:[eventpoll]']);
    await addProcess(9, 1000, ['anon_inode:inotify']);
    expect(await readInotify(true, proc)).toEqual({ limit: 128, used: 3 });
    expect(await readInotify(false, proc)).toEqual({ limit: 128, used: undefined });
  });

  test('have no limit where there is no such file', async () => {
    expect(await readInotify(true, proc)).toBeUndefined();
    expect(inotifyObstacle(undefined, 3)).toEqual([]);
  });

  test.each([
    [{ limit: 128, used: 20 }, []],
    [{ limit: 128, used: undefined }, []],
    [
      { limit: 128, used: 70 },
      [
        'fs.inotify.max_user_instances is 128, of which 70 are in use; 3 nodes need about 63: sudo sysctl fs.inotify.max_user_instances=512',
      ],
    ],
    [
      { limit: 32, used: undefined },
      ['fs.inotify.max_user_instances is 32; 3 nodes need about 63: sudo sysctl fs.inotify.max_user_instances=512'],
    ],
  ])('%j: what three nodes lack', (use, obstacle) => {
    expect(inotifyObstacle(use, 3)).toEqual(obstacle);
  });
});
