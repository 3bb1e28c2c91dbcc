import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';

/** One line about the machine that the figures are from. */
export function describeMachine(): string {
  const all = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`;
  const load = loadavg()[0]?.toFixed(1) ?? '?';
  return [
    `${all.length} cores (${all[0]?.model.trim() ?? 'unknown'}), ${memory}`,
    `kernel ${release()}`,
    versionOf('nft', /\bv(\S+)/, 'nft '),
    versionOf('iptables'),
    `Node ${process.version}`,
    `load ${load}`,
  ].join(', ');
}

function versionOf(program: string, pattern = /.*/, prefix = ''): string {
  try {
    const text = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
    const found = pattern.exec(text);
    return `${prefix}${found?.[1] ?? found?.[0] ?? text}`;
  } catch {
    return `no ${program}`;
  }
}
