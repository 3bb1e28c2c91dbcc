import { markdownCode, markdownTable } from '@switchyard/host';
import {
  type ChainDescription,
  chainsOf,
  type HookDescription,
  type ObjectDescription,
  objectsOf,
  type TableDescription,
} from '../../src/render/rules/model.ts';
import { printItem, verdictsOf } from '../../src/render/rules/print.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import { loadBalancingClasses } from '../../src/render/place-service.ts';

const header = `# Rules of the nftables mode

<!-- Generated from packages/backend-nftables/src/render/skeleton.ts; see docs/design/nftables.md. Do not edit. -->

The constant rules of table \`inet switchyard\`, in the text form of nft. Services, endpoints and settings are elements of
the maps and sets. What each object holds, and why: [the nftables backend](../design/nftables.md).

Names that end in \`4\` are for IPv4, those that end in \`6\` for IPv6.
`;

/** The page that lists the rules. */
export function rulesPage(table: TableDescription = skeleton('switchyard')): string {
  const parts = [header, baseChains(table), objects(table), chains(table)];
  return parts.join('\n');
}

function baseChains(table: TableDescription): string {
  const rows = chainsOf(table).flatMap(({ name, hook }) => (hook === undefined ? [] : [hookCells(name, hook)]));
  return `## Base chains\n\n${markdownTable(['Chain', 'Type', 'Hook', 'Priority'], rows)}\n`;
}

function hookCells(name: string, { type, at, priority }: HookDescription): readonly string[] {
  return [`\`${name}\``, type, at, String(priority)];
}

function objects(table: TableDescription): string {
  const rows = objectsOf(table).map(objectCells);
  const columns = ['Object', 'Kind', 'Key', 'Data', 'Attributes'];
  return `## Maps and sets\n\n${markdownTable(columns, rows)}\n`;
}

function objectCells(object: ObjectDescription): readonly string[] {
  const { kind, name, key, data = [], size, flags = [], counter = false, gcIntervalHours } = object;
  const attributes = [
    ...flags,
    ...(counter ? ['counter'] : []),
    ...(size === undefined ? [] : [`size ${size}`]),
    ...(gcIntervalHours === undefined ? [] : [`gc-interval ${gcIntervalHours}h`]),
  ];
  return [`\`${name}\``, kind, markdownCode(key.join(' . ')), markdownCode(data.join(' . ')), attributes.join(', ')];
}

function chains(table: TableDescription): string {
  const shown = chainsOf(table).filter((chain) => !isMiddleClass(chain));
  const text = shown.map((chain) => printItem(chain).join('\n')).join('\n\n');
  const [first, last] = [loadBalancingClasses[0]?.slots, loadBalancingClasses.at(-1)?.slots];
  const left = `Chain \`lb4-N\` picks one of N slots. Of N = ${first} to ${last} only the first and the last are shown: the others
differ from the last in their number alone.`;
  return `## Chains\n\n${left}\n\n\`\`\`nft\n${text}\n\`\`\`\n\n${elements(table)}`;
}

/** Elements with which the table is made, of maps that lead to chains. */
function elements(table: TableDescription): string {
  const rows = objectsOf(table).flatMap((object) => {
    const all = verdictsOf(object);
    const [first, last] = [all[0], all.at(-1)];
    if (first === undefined || last === undefined) return [];
    const text = [first, last].map(({ key, chain }) => `0x${key.toString(16)} : goto ${chain}`);
    return [[markdownCode(object.name), String(all.length), markdownCode(text[0] ?? ''), markdownCode(text[1] ?? '')]];
  });
  const columns = ['Map', 'Elements', 'First', 'Last'];
  return `## Elements that lead to chains\n\n${markdownTable(columns, rows)}\n`;
}

function isMiddleClass({ name }: ChainDescription): boolean {
  const slots = /^lb[46]-(\d+)$/.exec(name)?.[1];
  if (slots === undefined) return false;
  return ![loadBalancingClasses[0]?.slots, loadBalancingClasses.at(-1)?.slots].includes(Number(slots));
}
