import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { markdownTable } from '@switchyard/host';
import { readConformanceReport } from '../../src/profiles/report-yaml.ts';
import { failuresOf } from '../../src/profiles/reports-page.ts';
import { wrongProxies } from '../../src/testing/wrong-proxies.ts';
import { checkout } from '../mutants/apply-mutant.ts';
import { publishedFaults, type PublishedFault } from '../mutants/published-faults.ts';

/** `docs/reference/published-faults.md`: faults that users of proxies published, each with the case that finds it. */
export function publishedFaultsPage(): string {
  const rows = publishedFaults.map((one) => [
    `[${one.issue}](https://github.com/${one.issue.replace('#', '/issues/')})`,
    one.fault,
    ...finderOf(one),
  ]);
  return `# Published faults

<!-- Generated from apps/conformance/test/mutants/published-faults.ts by \`nx run conformance:generate\`. Do not edit. -->

Faults of Service proxies that their users published. Each is made again, in our own agent ([mutants](mutants.md)) or in a
scripted proxy, or the proxy itself is at hand; and a case of the conformance suite finds it, without knowing what it looks
for.

${markdownTable(['Issue', 'Fault', 'Made again by', 'Found by'], rows)}
`;
}

/** The proxy with the fault, and the case that finds it. Throws for a fault without one. */
function finderOf({ issue, foundBy }: PublishedFault): readonly [string, string] {
  if ('mutant' in foundBy) {
    const row = mutantRows().find(({ id }) => id === foundBy.mutant);
    const noticed = row?.noticed.split(',')[0] ?? '';
    if (!noticed.startsWith('`')) throw new TypeError(`${issue}: no case notices the mutant ${foundBy.mutant}`);
    return [`mutant \`${foundBy.mutant}\``, noticed];
  }
  if ('sequence' in foundBy) {
    const fake = wrongProxies.find((one) => one.sequence === foundBy.sequence && one.wrong === foundBy.wrong);
    if (fake === undefined) throw new TypeError(`${issue}: no scripted proxy ${foundBy.wrong} in ${foundBy.sequence}`);
    return [`a scripted proxy that ${foundBy.wrong}`, `\`${foundBy.sequence}\``];
  }
  return [foundBy.proxy, `\`${foundBy.case}\``];
}

function mutantRows(): readonly { readonly id: string; readonly noticed: string }[] {
  const page = readFileSync(join(checkout, 'docs/reference/mutants.md'), 'utf8');
  return [...page.matchAll(/^\| `([^`]+)` \| [^|]* \| [^|]* \| ([^|]*) \|/gm)].map(([, id = '', noticed = '']) => ({
    id,
    noticed,
  }));
}

/** Cases of published faults that a proxy of the conformance reports has, and that did not fail there. */
export function notFailed(): readonly string[] {
  const failed = ['nftables', 'iptables'].flatMap((mode) => {
    const name = `docs/conformance-reports/kube-proxy-1.36.2-${mode}.yaml`;
    const { report } = readConformanceReport(name, readFileSync(join(checkout, name), 'utf8'));
    return failuresOf(report);
  });
  return publishedFaults.flatMap(({ issue, foundBy }) =>
    'proxy' in foundBy && !failed.some((note) => note.case.startsWith(`${foundBy.case}/`)) ? [issue] : [],
  );
}
