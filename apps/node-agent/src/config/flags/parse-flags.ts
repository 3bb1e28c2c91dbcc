import { ConfigError } from '@switchyard/core';
import { valueOfTexts } from '../read-value.ts';
import type { Setting } from '../settings.ts';
import { type Flag, fieldOf, flagGroups, meaningOf } from './flag.ts';
import { flags } from './table.ts';
import { defaultText } from '../documents.ts';

interface GivenFlag {
  readonly flag: Flag;
  readonly setting: Setting;
  /** As it was written, one text per time. */
  readonly texts: readonly string[];
}

/** Flags that were given, by name. */
export type FlagValues = ReadonlyMap<string, GivenFlag>;

/** Flags of klog that Kubernetes removed in 1.26. kube-proxy refuses them, and so does this agent, with a hint. */
export const removedFlags: readonly string[] = [
  'add-dir-header',
  'alsologtostderr',
  'log-backtrace-at',
  'log-dir',
  'log-file',
  'log-file-max-size',
  'logtostderr',
  'one-output',
  'skip-headers',
  'skip-log-headers',
  'stderrthreshold',
];

const shortNames: Readonly<Record<string, string>> = { v: 'v', h: 'help' };

/**
 * Parses flags as Go's pflag: `--flag=value`, `--flag value`, `--switch`, `-v 4`, `-v4`, underscores for dashes. The last
 * value counts; gates add up. Throws one `ConfigError` with all faults.
 */
export function parseFlags(args: readonly string[]): FlagValues {
  const texts = new Map<Flag, string[]>();
  const faults: string[] = [];
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const given = readArgument(arg, rest);
    if (typeof given === 'string') faults.push(given);
    else if (given.flag !== undefined) texts.set(given.flag, [...(texts.get(given.flag) ?? []), given.text]);
  }
  const values = new Map<string, GivenFlag>();
  for (const [flag, own] of texts) {
    const result = valueOfTexts(flag.type, own);
    if (result.status === 'refused') {
      faults.push(`--${flag.name} ${JSON.stringify(own.join(','))}: ${result.why}`);
    } else {
      const setting: Setting = { value: result.value, origin: { kind: 'flag', flag: flag.name } };
      values.set(flag.name, { flag, setting, texts: own });
    }
  }
  if (faults.length > 0) throw new ConfigError('flags.invalid', `${faults.join('\n')}; see --help`);
  return values;
}

/** Returns a flag with its text, or a fault. Also takes the next argument if it is the value. */
function readArgument(
  arg: string,
  rest: string[],
): { readonly flag: Flag; readonly text: string } | { readonly flag: undefined } | string {
  if (arg === '--') {
    const [first] = rest.splice(0);
    return first === undefined ? { flag: undefined } : `unexpected argument ${JSON.stringify(first)}`;
  }
  if (!arg.startsWith('-') || arg === '-') return `unexpected argument ${JSON.stringify(arg)}`;
  const { written, name, text } = split(arg);
  const flag = flags.find((one) => one.name === name);
  if (flag === undefined) {
    if (text === undefined && rest[0]?.startsWith('-') === false) rest.shift(); // most likely its value
    const isRemoved = removedFlags.includes(name);
    return isRemoved ? `${written} was removed in Kubernetes 1.26: leave it out` : `unknown flag ${written}`;
  }
  const value = text ?? flag.bare ?? rest.shift();
  return value === undefined ? `${written} needs a value: ${flag.value}` : { flag, text: value };
}

/** Splits an argument; `written` is the flag as given, without the value. */
function split(arg: string): { readonly written: string; readonly name: string; readonly text: string | undefined } {
  const [, written = '', text] = /^([^=]*)(?:=(.*))?$/s.exec(arg) ?? [];
  if (written.startsWith('--')) return { written, name: written.slice(2).replaceAll('_', '-'), text };
  const name = shortNames[written.slice(1, 2)];
  if (name === undefined) return { written, name: '', text };
  const attached = written.length > 2 ? written.slice(2) + (text === undefined ? '' : `=${text}`) : text;
  return { written: written.slice(0, 2), name, text: attached };
}

const width = 44;

/** The text of --help. */
export function helpText(): string {
  const groups = flagGroups.map((group) => {
    const lines = flags.filter((flag) => flag.group === group).map(lineOf);
    return `${group}:\n${lines.join('\n')}\n`;
  });
  return `usage: switchyard-agent [FLAGS]
       switchyard-agent why|losses --help    why packets of Services are lost on this node

Programs the Service dataplane of this node in place of kube-proxy, and accepts kube-proxy's flags and configuration
file. docs/reference/flags.md and config.md describe their meaning here.

${groups.join('\n')}`;
}

function lineOf(flag: Flag): string {
  const { name, value } = flag;
  const dashes = name === 'v' ? '-v, --v' : name === 'help' ? '-h, --help' : `--${name}`;
  const left = `  ${dashes}${value === undefined ? '' : ` ${value}`}`;
  const text = [flag.help, ...remarksOf(flag)].join(' ');
  return left.length < width ? `${left.padEnd(width)}${text}` : `${left}\n${' '.repeat(width)}${text}`;
}

function remarksOf(flag: Flag): readonly string[] {
  if (flag.deprecated !== undefined) return [`(deprecated: use ${flag.deprecated})`];
  if (meaningOf(flag).kind === 'ignored') return ['(accepted, no effect)'];
  const field = fieldOf(flag);
  const usual = field === undefined ? '' : defaultText(field);
  return usual === '' || usual === 'false' ? [] : [`(default ${usual})`];
}
