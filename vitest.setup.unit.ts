import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

// Unit tests run anywhere, also as root on somebody's machine. What they forget to replace by a fake must not program that
// machine: a default that reaches its kernel is an error here, before anything is sent, written or run.

/** Programs that change the network of whoever runs them. */
const programs =
  /^(?:ip6?tables(?:-.+)?|xtables-.+|[ea]b?rptables(?:-.+)?|nft|nfacct|ipset|conntrack|ip|tc|bridge|nsenter|unshare|sysctl|modprobe)$/;
/** NETLINK_NETFILTER; a socket of NETLINK_ROUTE may ask, but for nothing else. */
const netfilter = 12;

function refuse(what: string): never {
  throw new Error(`a unit test must not ${what}: pass it a fake, or make it a test in test/privileged`);
}

/** Changes a function of a module of Node: `check` throws for arguments that are refused. */
function guard(module: object, name: string, check: (first: unknown) => void): void {
  const target = module as Record<string, (...args: readonly unknown[]) => unknown>;
  const original = target[name];
  if (original === undefined) throw new Error(`Node has no function ${name} to guard`);
  const guarded = (...args: readonly unknown[]): unknown => {
    check(args[0]);
    return original.apply(module, [...args]);
  };
  // As promisify knows it, which calls another function behind it.
  target[name] = Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
}

for (const name of ['spawn', 'spawnSync', 'execFile', 'execFileSync']) {
  guard(childProcess, name, (file) => {
    if (programs.test(basename(String(file)))) refuse(`run ${String(file)} on this machine`);
  });
}
for (const [module, name] of [
  [fs, 'writeFileSync'],
  [fs, 'writeFile'],
  [fs.promises, 'writeFile'],
] as const) {
  guard(module, name, (path) => {
    const isSetting = /^\/(?:proc\/sys|sys)\//.test(String(path)) && isForWriting(String(path));
    if (isSetting) refuse(`write ${String(path)} of this machine`);
  });
}
syncBuiltinESMExports();

/** What nobody may write refuses by itself. */
function isForWriting(path: string): boolean {
  const mode = fs.statSync(path, { throwIfNoEntry: false })?.mode ?? 0o200;
  return (mode & 0o222) !== 0;
}

interface NetlinkAddon {
  openNetlink(protocol: number, ...more: readonly unknown[]): { readonly fd: number };
  send(fd: number, bytes: Uint8Array): number;
}

const load = process.dlopen.bind(process);
process.dlopen = (module: { exports: unknown }, ...more: readonly unknown[]) => {
  Reflect.apply(load, undefined, [module, ...more]);
  const addon = module.exports as NetlinkAddon;
  if (typeof addon.openNetlink !== 'function') return;
  const protocols = new Map<number, number>();
  module.exports = {
    ...addon,
    openNetlink: (protocol: number, ...options: readonly unknown[]) => {
      const opened = addon.openNetlink(protocol, ...options);
      protocols.set(opened.fd, protocol);
      return opened;
    },
    send: (fd: number, bytes: Uint8Array) => {
      if (protocols.get(fd) === netfilter || changesNetwork(bytes))
        refuse("talk to this machine's netfilter or network");
      return addon.send(fd, bytes);
    },
  } satisfies NetlinkAddon;
};

/** Of the messages of rtnetlink, every fourth asks (RTM_GETLINK is 18); those below 16 are netlink's own. */
function changesNetwork(bytes: Uint8Array): boolean {
  const type = (bytes[4] ?? 0) | ((bytes[5] ?? 0) << 8);
  return type >= 16 && type % 4 !== 2;
}
