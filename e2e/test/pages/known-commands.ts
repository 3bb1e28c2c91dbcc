import { spawnSync } from 'node:child_process';
import { checkout } from '../scripted/scripted-machine.ts';

/** Flags of programs that no test machine needs to have, by program and subcommand. */
const flags: Readonly<Record<string, readonly string[]>> = {
  'kind create cluster': ['--config', '--image', '--name', '--retain'],
  'kind load docker-image': ['--name'],
  'kind delete cluster': ['--name'],
  'docker run': ['-d', '--name', '--network', '--restart', '-v', '--hostname', '--label', '--env'],
  'docker logs': ['-f'],
  'docker rm': ['-f'],
  'helm install': ['--namespace', '--values', '--set', '--create-namespace'],
  'helm upgrade': ['--namespace', '--values', '--set', '--install', '--reuse-values'],
  curl: ['-s', '-o', '-m', '--fail', '--max-time'],
  'nft list': [],
  uniq: ['-c'],
  '[': ['-z'],
  break: [],
  cd: [],
  echo: [],
  mktemp: ['-d'],
  sed: [],
  seq: [],
  sleep: [],
  sort: [],
  wait: [],
};

/** Our programs: where their `--help` comes from. */
const ours: readonly (readonly [command: string, program: string, args: readonly string[]])[] = [
  ['./dev image', 'tools/images/image.ts', []],
  ['apps/kind-lb-controller/bin/switchyard-lb check', 'apps/kind-lb-controller/src/main.ts', ['check']],
  ['apps/kind-lb-controller/bin/switchyard-lb', 'apps/kind-lb-controller/src/main.ts', []],
  ['switchyard/kind-lb-controller:0.1.0', 'apps/kind-lb-controller/src/main.ts', []],
  ['/usr/local/bin/kube-proxy', 'apps/node-agent/src/main.ts', []],
];

/** Returns the unknown program, subcommand or flag of a command; undefined if all are known. */
export function faultOf(words: readonly string[]): string | undefined {
  const [program = ''] = words;
  if (program === 'kubectl') return kubectlFault(words.slice(1));
  const own = ours.find(([command]) => `${words.join(' ')} `.startsWith(`${command} `));
  if (own !== undefined) return ownFault(own, words.slice(own[0].split(' ').length));
  const name = Object.keys(flags).find((known) => `${words.join(' ')} `.startsWith(`${known} `));
  if (name === undefined) return `unknown command: ${words.slice(0, 3).join(' ')}`;
  const rest = words.slice(name.split(' ').length);
  // Behind an image come the flags of its program.
  const image = name === 'docker run' ? rest.findIndex((word) => word.startsWith('switchyard/')) : -1;
  const inner = image < 0 ? undefined : faultOf(rest.slice(image));
  const wrong = flagsIn(image < 0 ? rest : rest.slice(0, image)).find((flag) => flags[name]?.includes(flag) !== true);
  return wrong === undefined ? inner : `${name}: unknown flag ${wrong}`;
}

function flagsIn(words: readonly string[]): readonly string[] {
  return words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/=.*/, ''));
}

const kubectlFaults = new Map<string, string | undefined>();

function kubectlFault(words: readonly string[]): string | undefined {
  const command = words.join(' ');
  if (!kubectlFaults.has(command)) kubectlFaults.set(command, askKubectl(words));
  return kubectlFaults.get(command);
}

/** The real kubectl reads the flags; `--help` keeps it from doing anything. */
function askKubectl(words: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync('kubectl', [...words, '--help'], { encoding: 'utf8' });
  if (error !== undefined) return `kubectl cannot be asked: ${error.message}`;
  return status === 0 ? undefined : `kubectl ${words.join(' ')}: ${stderr.trim()}`;
}

const helps = new Map<string, string>();

function ownFault([command, program, args]: (typeof ours)[number], words: readonly string[]): string | undefined {
  const help = helps.get(command) ?? helpOf(program, args);
  helps.set(command, help);
  const subjects = command === './dev image' ? words.filter((word) => /^[a-z]/.test(word)) : [];
  const named = new Set(help.match(/[\w-]+/g));
  const wrong = [...flagsIn(words), ...subjects].find((word) => !named.has(word));
  return wrong === undefined ? undefined : `${command}: ${wrong} is not in its --help`;
}

function helpOf(program: string, args: readonly string[]): string {
  const all = ['--conditions=@switchyard/source', `${checkout}/${program}`, ...args, '--help'];
  return spawnSync(process.execPath, all, { encoding: 'utf8' }).stdout;
}
