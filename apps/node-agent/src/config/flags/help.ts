import { type Flag, flagGroups } from './flag.ts';
import { flags } from './table.ts';

const width = 44;

/** The text of --help. */
export function helpText(): string {
  const groups = flagGroups.map((group) => {
    const lines = flags.filter((flag) => flag.group === group).map(lineOf);
    return `${group}:\n${lines.join('\n')}\n`;
  });
  return `usage: switchyard-agent [FLAGS]

Keeps the Service dataplane of this node equal to what the cluster asks, in place of kube-proxy, whose flags and
configuration file it takes. docs/generated/flags.md and config.md say what each of them means here.

${groups.join('\n')}`;
}

function lineOf({ name, value, help, deprecated }: Flag): string {
  const dashes = name === 'v' ? '-v, --v' : name === 'help' ? '-h, --help' : `--${name}`;
  const left = `  ${dashes}${value === undefined ? '' : ` ${value}`}`;
  const text = deprecated === undefined ? help : `${help} (deprecated: use ${deprecated})`;
  return left.length < width ? `${left.padEnd(width)}${text}` : `${left}\n${' '.repeat(width)}${text}`;
}
