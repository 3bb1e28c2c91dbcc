import { markdownTable } from '@switchyard/host';
import { dataplaneNames } from '@switchyard/scenarios';
import { catalogue } from '../../src/cases/catalogue.ts';
import { claims } from '../../src/profiles/claims.ts';
import { type CasePlace, type Level, placeOf, type ProfileName, profiles } from '../../src/profiles/profiles.ts';

/** `docs/reference/conformance-profiles.md`: what each profile requires, and the sentence that each case rests on. */
export function profilesPage(): string {
  const ids = [
    ...new Set(dataplaneNames.flatMap((dataplane) => catalogue({ dataplane, cell: 'dual' })).map(({ id }) => id)),
  ];
  const placed = ids.flatMap((id) => placeOf({ id }) ?? []);
  const groups = [...Map.groupBy(placed, ({ group, profile }) => `${profile} ${group}`).values()].flatMap((members) => {
    const [first] = members;
    return first === undefined ? [] : [{ ...first, count: members.length }];
  });
  const sections = (Object.keys(profiles) as ProfileName[]).map((profile) =>
    section(
      profile,
      groups.filter((one) => one.profile === profile),
    ),
  );
  return `# Conformance profiles

<!-- Generated from apps/conformance/src/profiles by \`nx run conformance:generate\`. Do not edit. -->

An implementation claims a profile as a whole. [Reports](../conformance-reports/README.md) count by profile and level:

- **required**: rests on the Kubernetes API or a KEP. Who claims the profile passes all of these.
- **extended**: optional in the API, or what kube-proxy does where the API is silent. A failure is shown, but not counted
  against the profile.
- **informative**: kube-proxy's modes differ, or the API leaves the answer open. Differences are listed; none is a failure.

[All cases](conformance-cases.md). [How to run them and publish a report](../test/conformance.md#publish-a-report).

${sections.join('\n')}`;
}

interface Group extends CasePlace {
  /** Of cases, in all modes. */
  readonly count: number;
}

const levels: readonly Level[] = ['required', 'extended', 'informative'];

function section(profile: ProfileName, groups: readonly Group[]): string {
  const rows = levels.flatMap((level) =>
    groups
      .filter((one) => one.level === level)
      .map((one) => [`\`${one.group}\``, String(one.count), level, basisOf(one)]),
  );
  return `## ${profile}\n\n${capital(profiles[profile])}.\n\n${markdownTable(['Cases', 'Number', 'Level', 'Rests on'], rows)}\n`;
}

function basisOf({ claims: names, isInformative }: Group): string {
  const basis = names.map((name) => `${claims[name].source}: ${claims[name].sentence}`).join('. ');
  const open = ['pod/tcp', 'node/tcp'].filter((check) => isInformative(check)).map((check) => check.split('/')[0]);
  return open.length === 0 ? basis : `${basis}. Informative: what a ${open.join(' and the ')} gets`;
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
