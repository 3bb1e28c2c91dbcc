import { markdownCode, markdownTable } from '@switchyard/host';
import { defaultText } from '../../../src/config/documents.ts';
import type { FieldType, Schema } from '../../../src/config/schema/field.ts';
import { kubeProxySchema } from '../../../src/config/schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../../../src/config/schema/switchyard-fields.ts';
import { gateReference } from './gate-reference.ts';
import { countText, meaningText } from './meaning-text.ts';

const typeTexts: Readonly<Record<FieldType, string>> = {
  boolean: 'boolean',
  integer: 'integer',
  number: 'number',
  text: 'string',
  duration: 'duration',
  nanoseconds: 'duration, or nanoseconds',
  quantity: 'quantity',
  list: 'list of strings',
  gates: 'map of booleans',
  vmodule: 'list of filePattern and verbosity',
};

const changeTexts = { live: 'at once', restart: 'restart', none: '' } as const;

/** The text of docs/reference/config.md: every field of both configuration files, made from the schemas. */
export function configReference(): string {
  return `# Configuration files

<!-- Generated from apps/node-agent/src/config/schema; see docs/design/configuration.md. Do not edit. -->

Flag by flag: [flags](flags.md). How files are read, checked and followed: [configuration](../design/configuration.md).

**Change** says what a change of the file does to a running agent: it counts at once, or the agent ends with a line that names
the setting, so that it is started again (forwarding stays in place meanwhile). Nothing: the field has no effect anyway.
kube-proxy ends at any change it notices, and misses those of a ConfigMap.

## \`${kubeProxySchema.kind}\`

\`--config FILE\`, ${markdownCode(kubeProxySchema.apiVersion)}: kube-proxy's own file, as it is. ${countText(kubeProxySchema.fields.map(({ meaning }) => meaning))}.

${fieldTable(kubeProxySchema)}

## Feature gates

${gateReference()}

## \`${switchyardSchema.kind}\`

\`--switchyard-config FILE\`, ${markdownCode(switchyardSchema.apiVersion)}: what kube-proxy has no word for. kube-proxy's file is never
extended, so it stays good for kube-proxy. Flags win over this file.

${markdownTable(
  ['Field', 'Type', 'Default', 'Change', 'Meaning'],
  switchyardSchema.fields.map((field) => [
    markdownCode(field.path),
    typeTexts[field.type],
    markdownCode(defaultText(field)),
    changeTexts[field.change],
    field.help,
  ]),
)}

\`\`\`yaml
apiVersion: ${switchyardSchema.apiVersion}
kind: ${switchyardSchema.kind}
serviceMetrics:
  limit: 200
\`\`\`
`;
}

function fieldTable({ fields }: Schema): string {
  return markdownTable(
    ['Field', 'Type', 'Default', 'Modes', 'Here', 'Change', 'Meaning'],
    fields.map((field) => [
      markdownCode(field.path),
      typeTexts[field.type],
      markdownCode(defaultText(field)),
      field.modes,
      meaningText(field.meaning),
      changeTexts[field.change],
      field.help,
    ]),
  );
}
