import { markdownCode, markdownTable } from '@switchyard/host';
import { type FeatureGate, type GateStageName, gateTable } from '../../../src/config/gate-table.ts';
import { kubernetesRelease } from '../../../src/config/kubernetes-version.ts';

/** Stages in the words of the pages. */
export const stageTexts: Readonly<Record<GateStageName, string>> = {
  ALPHA: 'alpha',
  BETA: 'beta',
  GA: 'GA',
  DEPRECATED: 'deprecated',
};

/** The text about feature gates of docs/reference/config.md, made from the gate table. */
export function gateReference(): string {
  return `The agent knows the gates of kube-proxy in Kubernetes 1.26 to 1.38, and reads them as ${kubernetesRelease} does; one that began later
has its first stage. No gate keeps the agent from starting: a file that is legal for one release must not fail with another.
A gate without effect here, and one of another component (\`SidecarContainers\` and the like), gives a line in the log with its reason.
An unknown gate, one that is set against its lock, and one that turns a permanent feature off (**Gone in** ${kubernetesRelease} or
before) are each a warning and an Event \`FeatureGateIgnored\` on the Node.

${markdownTable(['Gate', 'Since', 'Default', 'Locked since', 'Gone in', 'Effect here'], gateTable.map(gateRow))}`;
}

function gateRow(gate: FeatureGate): readonly string[] {
  const { name, stages, goneIn, meaning } = gate;
  return [
    markdownCode(name),
    sinceText(gate),
    defaultText(gate),
    releaseText(stages.find(({ isLocked }) => isLocked)?.since),
    releaseText(goneIn),
    meaning.kind === 'effect' ? meaning.text : `none: ${meaning.why}`,
  ];
}

/** `alpha 1.29, beta 1.31`: where each stage begins. */
function sinceText({ stages, isOurs }: FeatureGate): string {
  if (isOurs) return "alpha, Switchyard's own";
  return stages
    .filter(({ stage }, index) => stages[index - 1]?.stage !== stage)
    .map(({ stage, since }) => `${stageTexts[stage]} ${releaseText(since)}`)
    .join(', ');
}

/** `off, on since 1.31`: the first default, and its changes. */
function defaultText({ stages }: FeatureGate): string {
  const [first] = stages;
  const changes = stages.filter((stage, index) => stage.default !== (stages[index - 1] ?? first).default);
  return [onOff(first.default), ...changes.map((one) => `${onOff(one.default)} since ${releaseText(one.since)}`)].join(
    ', ',
  );
}

function onOff(isOn: boolean): string {
  return isOn ? 'on' : 'off';
}

function releaseText(minor: number | undefined): string {
  return minor === undefined ? '' : `1.${minor}`;
}
