import { defaultText } from '../documents.ts';
import { fieldOf, type Flag, flagGroups, meaningOf } from './flag.ts';
import { flags } from './table.ts';

const width = 44;

/** The text of --help. */
export function helpText(): string {
  const groups = flagGroups.map((group) => {
    const lines = flags.filter((flag) => flag.group === group).map(lineOf);
    return `${group}:\n${lines.join('\n')}\n`;
  });
  return `usage: switchyard-agent [FLAGS]

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
