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
    nftVersion(),
    iptablesVersion(),
    `Node ${process.version}`,
    `load ${load}`,
  ].join(', ');
}

function iptablesVersion(): string {
  try {
    return execFileSync('iptables', ['--version'], { encoding: 'utf8' }).trim();
  } catch {
    return 'no iptables';
  }
}

function nftVersion(): string {
  try {
    const text = execFileSync('nft', ['--version'], { encoding: 'utf8' });
    return `nft ${/\bv(\S+)/.exec(text)?.[1] ?? text.trim()}`;
  } catch {
    return 'no nft';
  }
}
