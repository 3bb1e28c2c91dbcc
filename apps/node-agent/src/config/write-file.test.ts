import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigFolder } from './testing/config-folder.ts';
import { writeWhole } from './commands.ts';

describe('writeWhole', () => {
  test('writes a new file, and replaces an old one', async () => {
    await using folder = await ConfigFolder.create();
    const file = join(folder.path, 'out.yaml');
    await writeWhole(file, 'one\n');
    await writeWhole(file, 'two\n');
    expect(await readFile(file, 'utf8')).toBe('two\n');
    expect(await readdir(folder.path)).toEqual(['out.yaml']);
  });

  test('writes to what a link points to', async () => {
    await using folder = await ConfigFolder.create();
    await folder.write('real.yaml', 'old\n');
    const link = join(folder.path, 'link.yaml');
    await symlink('real.yaml', link);
    await writeWhole(link, 'new\n');
    expect(await readFile(join(folder.path, 'real.yaml'), 'utf8')).toBe('new\n');
  });

  test('a failure on the way leaves the old file', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('out.yaml', 'old\n');
    await mkdir(join(folder.path, `.out.yaml.${process.pid}.tmp`)); // where the draft would be
    await expect(writeWhole(file, 'new\n')).rejects.toMatchObject({
      name: 'HostError',
      message: expect.stringMatching(/^cannot write .*out\.yaml: .*; the old file is unchanged$/),
    });
    expect(await readFile(file, 'utf8')).toBe('old\n');
  });

  test('the draft of a process that was killed is no obstacle', async () => {
    await using folder = await ConfigFolder.create();
    await writeFile(join(folder.path, `.out.yaml.${process.pid}.tmp`), 'half');
    await writeWhole(join(folder.path, 'out.yaml'), 'whole\n');
    expect(await readdir(folder.path)).toEqual(['out.yaml']);
  });

  test('a device is written to; a full one is an error', async () => {
    await writeWhole('/dev/null', 'x');
    await expect(writeWhole('/dev/full', 'x')).rejects.toThrow(/^cannot write \/dev\/full: ENOSPC: no space left/);
  });
});
