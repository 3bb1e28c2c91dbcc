import { markdownTable } from '@switchyard/host';
import {
  dataplaneNames,
  dataplanes,
  healthRules,
  masqueradeRules,
  type MatrixRule,
  matrixScenarios,
  outcomeRules,
  reachRules,
  referenceDataplane,
} from '@switchyard/scenarios';
import { catalogue } from '../../src/cases/catalogue.ts';
import type { ConformanceCase } from '../../src/model/case.ts';
import { coverage, type CoveredFeature } from './coverage.ts';

/** `docs/reference/conformance-cases.md`: every case, the rules of the matrix, and which case checks which feature. */
export function casesPage(): string {
  const all = catalogue({ dataplane: referenceDataplane.name, cell: 'dual' });
  const counts = casesByRule();
  return `# Conformance cases

<!-- Generated from apps/conformance/src/cases by \`nx run conformance:generate\`. Do not edit. -->

What \`switchyard-conformance\` can check of a Service proxy, each in every IP family it is for.
[How to run them](../test/conformance.md). \`switchyard-conformance list\` prints the same, \`--json\` with every check.

Expectations are those of the nftables mode; where modes differ, each is held to its own.

## Which case checks which feature

${markdownTable(['Row', 'Feature', 'Cases'], coverage.map(coverageRow))}

${sections(all)}
## Rules of the matrix

The matrix is judged by these rules alone, the first of a list that speaks. Switchyard's own table is compared with them.

${ruleList('Which endpoints are in reach', reachRules, counts)}
${ruleList('What becomes of a packet', outcomeRules, counts)}
${ruleList('Whether the endpoint sees the address of the node instead of that of the sender', masqueradeRules, counts)}
${ruleList('What a health check answers', healthRules, counts)}`;
}

/**
 * Lines in which a written page differs from the generated one: `- ` if it should not be there, `+ ` if it is missing. Rows of
 * scenarios that the page lacks do not count, so that a new scenario is one file.
 */
export function differences(written: string, generated: string): readonly string[] {
  const [old, now] = [written.split('\n'), generated.split('\n')];
  // The widths of a table's columns follow from its rows.
  const [oldLines, nowLines] = [old, now].map((lines) => new Set(lines.map(withoutPadding)));
  const gone = old.filter((line) => nowLines?.has(withoutPadding(line)) !== true);
  const names = new Set(gone.flatMap((line) => scenarioOf(line) ?? []));
  const missing = now.filter((line) => {
    const name = scenarioOf(line);
    return oldLines?.has(withoutPadding(line)) !== true && (name === undefined || names.has(name));
  });
  return [...gone.map((line) => `- ${line}`), ...missing.map((line) => `+ ${line}`)];
}

function withoutPadding(line: string): string {
  return line.startsWith('|') ? line.replaceAll(/ {2,}/g, ' ').replaceAll(/-{2,}/g, '-') : line;
}

function scenarioOf(row: string): string | undefined {
  return /^\| `(scenario\/[^`]+)`/.exec(row)?.[1];
}

const kinds: readonly { readonly tag: string; readonly title: string; readonly intro: string }[] = [
  {
    tag: 'scenario',
    title: 'Scenarios',
    intro: 'A cluster in a file, and what becomes of packets as it changes. Checks are lines of the file.',
  },
  {
    tag: 'matrix',
    title: 'Matrix',
    intro:
      'Policy by endpoint state by frontend kind. Checks are source by protocol: a pod, the node and a client outside, by TCP, UDP and SCTP.',
  },
  {
    tag: 'sequence',
    title: 'Sequences',
    intro: 'What takes time: load, held connections, a proxy that ends and starts.',
  },
  {
    tag: 'rollout',
    title: 'Rolling updates',
    intro: 'Pods are replaced under an open loop of requests; none may be lost.',
  },
];

function sections(all: readonly ConformanceCase[]): string {
  const notFor = reasonsByCase();
  return kinds
    .map(({ tag, title, intro }) => {
      const groups = Map.groupBy(
        all.filter(({ tags }) => tags[0] === tag),
        ({ id }) => id.slice(0, id.lastIndexOf('/')),
      );
      const rows = [...groups].map(([name, members]) => caseRow(name, members, notFor));
      return `## ${title}\n\n${intro}\n\n${markdownTable(['Case', 'What must be so', 'Why', 'Tags'], rows)}\n`;
    })
    .join('\n');
}

function caseRow(
  name: string,
  members: readonly ConformanceCase[],
  notFor: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const [first] = members;
  const families = members.map(({ id }) => id.slice(name.length + 1)).join(', ');
  const reasons = [...new Set(members.flatMap(({ id }) => notFor.get(id) ?? []))].map((reason) => ` (${reason})`);
  const tags = [...new Set(members.flatMap((one) => one.tags.slice(1)))];
  return [
    `\`${name}/\` ${families}`,
    `${first?.title ?? ''}${reasons.join('')}`,
    linkFacts(first?.why ?? ''),
    tags.join(' '),
  ];
}

/** Links the number of each cited fact to its statement. */
function linkFacts(text: string): string {
  return text.replaceAll(/\bfacts? \d+(?:(?:, | and )\d+)*/g, (facts) =>
    facts.replaceAll(/\d+/g, (fact) => `[${fact}](kube-proxy-behaviour.md#fact-${fact})`),
  );
}

/** Why a mode leaves a case out, by its id. */
function reasonsByCase(): ReadonlyMap<string, readonly string[]> {
  const skips = dataplaneNames.flatMap((dataplane) =>
    catalogue({ dataplane, cell: 'dual' }).flatMap(({ id, notFor }) => (notFor === undefined ? [] : [{ id, notFor }])),
  );
  return new Map(
    [...Map.groupBy(skips, ({ id }) => id)].map(([id, found]) => [id, [...new Set(found.map((one) => one.notFor))]]),
  );
}

function coverageRow(one: CoveredFeature): readonly string[] {
  const how = one.status === 'covered' ? one.cases.map((glob) => `\`${glob}\``).join(', ') : `none: ${one.because}`;
  return [String(one.row), one.feature, how];
}

function ruleList<Given, Decision>(
  title: string,
  rules: readonly MatrixRule<Given, Decision>[],
  counts: ReadonlyMap<string, number>,
): string {
  const lines = rules.map(
    ({ id, sentence }, index) => `${index + 1}. ${sentence}. (\`${id}\`, ${counts.get(id) ?? 0} cases)`,
  );
  return `**${title}**\n\n${lines.join('\n')}\n`;
}

/** In how many Services of the matrix, of all modes, a rule decides something. */
function casesByRule(): ReadonlyMap<string, number> {
  const ids = dataplanes.flatMap((dataplane) => matrixScenarios(dataplane).flatMap(({ rules }) => rules));
  return new Map([...Map.groupBy(ids, (id) => id)].map(([id, all]) => [id, all.length]));
}
