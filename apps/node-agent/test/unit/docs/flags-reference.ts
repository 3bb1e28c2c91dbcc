import { markdownCode, markdownTable } from '@switchyard/host';
import { defaultText } from '../../../src/config/documents.ts';
import { fieldOf, type Flag, flagGroups, meaningOf } from '../../../src/config/flags/flag.ts';
import { removedFlags } from '../../../src/config/flags/parse-flags.ts';
import { flags } from '../../../src/config/flags/table.ts';
import { countText, meaningText } from './meaning-text.ts';

/** The text of docs/reference/flags.md: every flag, made from the tables. */
export function flagsReference(): string {
  const theirs = flags.filter(({ group }) => group !== 'Switchyard');
  return `# Flags

<!-- Generated from apps/node-agent/src/config/flags; see docs/design/configuration.md. Do not edit. -->

Every flag of kube-proxy 1.36 to 1.38 on Linux, then those of the agent alone. Field by field: [config](config.md).

Written as for kube-proxy: \`--flag=value\` or \`--flag value\`, \`--switch\` or \`--switch=false\`, underscores as good as dashes, the
last one counts; lists and feature gates add up. Anything that is no flag is an error, and so is an unknown flag: every fault of
a command line is told in one line.

**Beside \`--config\`** most flags have no effect, as in kube-proxy; unlike it, the agent names those in one line of its log.
Those that count win over the file.

kube-proxy's flags: ${countText(theirs.map(meaningOf))}.

${flagGroups.map((group) => section(group)).join('\n\n')}

## Refused

${removedFlags.map((name) => markdownCode(`--${name}`)).join(', ')}: Kubernetes removed them in 1.26, and kube-proxy does not start with them
either.
`;
}

function section(group: Flag['group']): string {
  const own = flags.filter((flag) => flag.group === group);
  if (group === 'Switchyard') {
    return `## ${group}\n\n${markdownTable(
      ['Flag', 'Default', 'Field', 'Meaning'],
      own.map((flag) => [nameText(flag), unsetText(flag), markdownCode(fieldOf(flag)?.path ?? ''), flag.help]),
    )}`;
  }
  return `## ${group}\n\n${markdownTable(
    ['Flag', 'Default', 'Beside `--config`', 'Field', 'Here', 'Meaning'],
    own.map((flag) => [
      nameText(flag),
      unsetText(flag),
      flag.isKeptWithFile ? 'counts' : '',
      fieldsText(flag),
      meaningText(meaningOf(flag)),
      flag.deprecated === undefined ? flag.help : `${flag.help}. Deprecated: use ${markdownCode(flag.deprecated)}`,
    ]),
  )}`;
}

function nameText({ name, value }: Flag): string {
  return markdownCode(`${name === 'v' ? '-v' : `--${name}`}${value === undefined ? '' : ` ${value}`}`);
}

/** The field that a flag sets; two where the mode decides which. */
function fieldsText(flag: Flag): string {
  const { target } = flag;
  if (target.kind !== 'fieldOfMode') return markdownCode(fieldOf(flag)?.path ?? '');
  return `${markdownCode(`iptables.${target.name}`)}, in the other modes ${markdownCode(`nftables.${target.name}`)}`;
}

function unsetText(flag: Flag): string {
  const field = fieldOf(flag);
  return field === undefined ? '' : markdownCode(defaultText(field));
}
