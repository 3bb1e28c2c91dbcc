import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lackingCapabilities, runtimeWithout } from './docker-engine.ts';

test.each([
  ['all of Linux 6', '000001ffffffffff', []],
  ['no CAP_SYS_RESOURCE', '000001fffeffffff', ['CAP_SYS_RESOURCE']],
  ['neither the first nor the last', '000000fffffffffe', ['CAP_CHOWN', 'CAP_CHECKPOINT_RESTORE']],
])('a process that can have %s', (_, mask, lacking) => {
  expect(lackingCapabilities(`Name:\tnode\nCapBnd:\t${mask}\nCapAmb:\t0000000000000000\n`)).toEqual(lacking);
});

test.each([
  ['between others', ['CAP_A', 'CAP_X', 'CAP_B'], ['CAP_A', 'CAP_B']],
  ['at the end', ['CAP_A', 'CAP_X'], ['CAP_A']],
  ['alone', ['CAP_X'], []],
  ['both that lack', ['CAP_Y', 'CAP_X'], []],
  ['as part of another name', ['CAP_XY'], ['CAP_XY']],
])('a right that lacks is taken out of what runc reads: %s', (_, asked, left) => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-runtime-'));
  try {
    writeFileSync(join(folder, 'runc'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
    writeFileSync(join(folder, 'runtime'), runtimeWithout(['CAP_X', 'CAP_Y']));
    const file = join(folder, 'process.json');
    writeFileSync(file, JSON.stringify({ capabilities: { bounding: asked } }));
    const command = ['--log', 'x', 'exec', '--process', file, '--detach', 'id'];
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    const ran = spawnSync('sh', [join(folder, 'runtime'), ...command], { encoding: 'utf8', env });
    expect(ran).toMatchObject({ status: 0, stdout: `${command.join(' ')}\n`, stderr: '' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ capabilities: { bounding: left } });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
