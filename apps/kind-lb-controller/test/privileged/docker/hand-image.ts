import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DockerEngine } from '@switchyard/lab';

/** The name under which `importHandImage` makes it. */
export const handImage = 'switchyard/load-balancer:by-hand';

const idleConfiguration = `global
  log stdout format raw daemon
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend idle
  bind unix@/run/lb/idle.sock
`;

/** Adds addresses, keeps what it was sent, and answers as the worker does. */
const worker = `#!/usr/bin/node
const fs = require('node:fs');
const { execFileSync } = require('node:child_process');
const text = fs.readFileSync(0, 'utf8');
const { command, spec } = JSON.parse(text);
let changed = false;
const there = execFileSync('ip', ['-o', 'addr', 'show', 'dev', 'eth0'], { encoding: 'utf8' });
for (const ip of spec?.addresses ?? []) {
  const cidr = ip + (ip.includes(':') ? '/128' : '/32');
  if (there.includes(' ' + cidr + ' ')) continue;
  execFileSync('ip', ['addr', 'add', cidr, 'dev', 'eth0', ...(ip.includes(':') ? ['nodad', 'preferred_lft', '0'] : [])]);
  changed = true;
}
const file = '/run/lb/' + command;
if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) changed = true;
fs.writeFileSync(file, text);
console.log(JSON.stringify({ status: changed ? 'applied' : 'unchanged' }));
`;

/** An image of this machine's HAProxy, Node and ip, with a small stand-in for the worker: for what the runtime does with containers. */
export async function importHandImage(engine: DockerEngine, folder: string): Promise<void> {
  const root = join(folder, 'hand-image');
  for (const path of ['usr/bin', 'tmp', 'run/lb', 'etc']) mkdirSync(join(root, path), { recursive: true });
  for (const name of [process.execPath, 'haproxy', 'dash', 'ip', 'cat', 'sleep']) copyProgram(root, name);
  symlinkSync('dash', join(root, 'usr/bin/sh'));
  symlinkSync('usr/bin', join(root, 'bin'));
  writeFileSync(join(root, 'etc/idle.cfg'), idleConfiguration);
  writeFileSync(join(root, 'usr/bin/switchyard-lb-worker'), worker);
  chmodSync(join(root, 'usr/bin/switchyard-lb-worker'), 0o755);
  for (const path of ['tmp', 'run/lb']) chmodSync(join(root, path), 0o777);
  execFileSync('tar', ['-C', root, '-cf', `${root}.tar`, '.']);
  const changes = [
    'USER 99:0',
    'ENV PATH=/usr/bin',
    'CMD ["haproxy", "-W", "-S", "/run/lb/master.sock", "-f", "/etc/idle.cfg"]',
  ];
  const options = changes.flatMap((one) => ['--change', one]);
  const { exitCode, stderr } = await engine.cli(['import', ...options, `${root}.tar`, handImage]);
  if (exitCode !== 0) throw new Error(`docker import: ${stderr}`);
}

function copyProgram(root: string, name: string): void {
  const path = name.startsWith('/') ? name : execFileSync('which', [name], { encoding: 'utf8' }).trim();
  copyFileSync(realpathSync(path), join(root, 'usr/bin', basename(path)));
  const libraries = execFileSync('ldd', [path], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  for (const library of libraries.filter((one) => existsSync(one))) {
    mkdirSync(join(root, dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), join(root, library));
  }
}
