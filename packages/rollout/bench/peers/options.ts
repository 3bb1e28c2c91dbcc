import { access, constants, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';

/** Dataplane modes that are compared. kube-proxy has no `ebpf`. */
export const peerModes = ['nftables', 'iptables', 'ebpf'] as const;

export type PeerMode = (typeof peerModes)[number];

/** Proxies of a comparison, its sizes and numbers of samples. */
export interface PeersOptions {
  /** Program files. */
  readonly kubeProxy: string;
  /** The real API server; undefined: the lab's. */
  readonly apiServer: { readonly kubeApiserver: string; readonly etcd: string } | undefined;
  /** Numbers of Services with ten endpoints each. */
  readonly sizes: readonly number[];
  readonly modes: readonly PeerMode[];
  readonly rounds: number;
  /** Measured endpoint changes of each round. */
  readonly changes: number;
  /** Endpoint changes, one after another, before memory is read for the last time. */
  readonly churn: number;
  /** Services that change at once. */
  readonly burst: number;
  /** Connections that are timed, each round. */
  readonly connects: number;
  /** `minSyncPeriod` of kube-proxy and of our iptables mode, in milliseconds. */
  readonly minSyncPeriod: number;
  /** Milliseconds that a proxy has for its first rules, and for the changes of a round. */
  readonly patience: number;
  /** Milliseconds between the first answer and reading memory. */
  readonly settle: number;
  /** Output files. */
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  /** Description of this machine, for the output. */
  readonly machine: string;
}

/** The text of `--help`. */
export const peersHelp = `./dev bench peers --kube-proxy FILE [--kube-apiserver FILE --etcd FILE] [flag...]

Measures kube-proxy and our modes in turns, on nodes of one lab, and prints a table. Needs root.

  --kube-proxy FILE          kube-proxy's program, of any version
  --kube-apiserver FILE      a real API server instead of the lab's; needs --etcd
  --etcd FILE
  --size 100,1000,5000       Services of ten endpoints each
  --mode nftables,iptables,ebpf   modes; kube-proxy runs in the first two
  --rounds 3                 turns of each proxy
  --changes 100              endpoint changes that are timed, per turn; fewer where the time of --patience is over
  --churn 1000               endpoint changes before memory is read again, in the last turn
  --burst 500                Services that change at once
  --connects 1500            connections that are timed, per turn
  --min-sync-period 10       milliseconds; of kube-proxy (its default: 1000) and of our iptables mode
  --patience 180             seconds that a cold start, or the changes of a turn, may take
  --json FILE                all figures, with machine and versions
  --markdown FILE            the table for documents
`;

const strings = ['kube-proxy', 'kube-apiserver', 'etcd', 'json', 'markdown'] as const;
const defaults = {
  size: '100,1000,5000',
  mode: peerModes.join(','),
  rounds: '3',
  changes: '100',
  churn: '1000',
  burst: '500',
  connects: '1500',
  'min-sync-period': '10',
  patience: '180',
  settle: '2',
  machine: 'unknown machine',
} as const;

/** Reads the command line; files are relative to `folder`. Rejects with `ConfigError` for what is wrong, a missing program included. */
export async function parsePeersOptions(args: readonly string[], folder: string): Promise<PeersOptions> {
  const values = readFlags(args);
  const file = (name: (typeof strings)[number]): string | undefined => {
    const text = values[name];
    return text === undefined ? undefined : resolve(folder, text);
  };
  const [kubeProxy, kubeApiserver, etcd] = [file('kube-proxy'), file('kube-apiserver'), file('etcd')];
  if (kubeProxy === undefined) throw wrong('--kube-proxy FILE is missing: name the program to compare with');
  if ((kubeApiserver === undefined) !== (etcd === undefined)) {
    throw wrong('--kube-apiserver and --etcd need each other: give both, or neither for the API server of the lab');
  }
  await checkProgram('--kube-proxy', kubeProxy);
  if (kubeApiserver !== undefined) await checkProgram('--kube-apiserver', kubeApiserver);
  if (etcd !== undefined) await checkProgram('--etcd', etcd);
  const number = (name: keyof typeof defaults): number => countOf(name, values[name]);
  return {
    kubeProxy,
    apiServer: kubeApiserver === undefined || etcd === undefined ? undefined : { kubeApiserver, etcd },
    sizes: values.size.split(',').map((text) => countOf('size', text)),
    modes: values.mode.split(',').map(modeOf),
    rounds: number('rounds'),
    changes: number('changes'),
    churn: number('churn'),
    burst: number('burst'),
    connects: number('connects'),
    minSyncPeriod: number('min-sync-period'),
    patience: number('patience') * 1000,
    settle: number('settle') * 1000,
    json: file('json'),
    markdown: file('markdown'),
    machine: values.machine,
  };
}

type FlagTexts = Readonly<Record<keyof typeof defaults, string>> &
  Readonly<Partial<Record<(typeof strings)[number], string>>>;

function readFlags(args: readonly string[]): FlagTexts {
  const flags = Object.fromEntries(
    [...strings, ...Object.keys(defaults)].map((name) => [name, { type: 'string' as const }]),
  );
  try {
    return { ...defaults, ...parseArgs({ args: [...args], options: flags }).values };
  } catch (cause) {
    throw new ConfigError('bench.peers', `${messageOf(cause)}; see ./dev bench peers --help`, { cause });
  }
}

function countOf(name: string, text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0 && text.trim() !== '') return count;
  throw wrong(`--${name} ${JSON.stringify(text)}: must be a whole number`);
}

function modeOf(text: string): PeerMode {
  const mode = peerModes.find((one) => one === text.trim());
  if (mode !== undefined) return mode;
  throw wrong(`--mode ${JSON.stringify(text)}: must be one of ${peerModes.join(', ')}`);
}

async function checkProgram(flag: string, file: string): Promise<void> {
  try {
    await access(file, constants.X_OK);
    if (!(await stat(file)).isFile()) throw new Error('it is no file');
  } catch (cause) {
    throw new ConfigError('bench.peers', `${flag}: cannot run ${file}: ${messageOf(cause)}; name a program file`, {
      cause,
    });
  }
}

function wrong(text: string): ConfigError {
  return new ConfigError('bench.peers', `${text}; see ./dev bench peers --help`);
}
