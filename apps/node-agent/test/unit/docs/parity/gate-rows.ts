import { gateStateIn } from '../../../../src/config/feature-gates.ts';
import { type FeatureGate, gateTable } from '../../../../src/config/gate-table.ts';
import { stageTexts } from '../gate-reference.ts';
import { comparedReleases, type Release } from './row.ts';

/** A feature gate of kube-proxy, and its state in each compared release. */
export interface GateRow {
  readonly name: string;
  /** Stage and default; `-` where the release has no such gate. */
  readonly states: Readonly<Record<Release, string>>;
  /** The agent's use of the gate. */
  readonly effect: string;
}

/** Every gate of kube-proxy that a compared release has. */
export const gateRows: readonly GateRow[] = gateTable
  .filter(({ isOurs }) => isOurs !== true)
  .map((gate): GateRow => {
    const { name, meaning } = gate;
    const states = {
      '1.36': stateText(gate, '1.36'),
      '1.37': stateText(gate, '1.37'),
      '1.38': stateText(gate, '1.38'),
    };
    return { name, states, effect: meaning.kind === 'effect' ? meaning.text : `no effect: ${meaning.why}` };
  })
  .filter(({ states }) => comparedReleases.some((release) => states[release] !== '-'));

function stateText(gate: FeatureGate, release: Release): string {
  const minor = Number(release.split('.')[1]);
  const { stage, default: on, isLocked, isPermanent } = gateStateIn(minor, gate);
  if (isPermanent || gate.stages[0].since > minor) return '-';
  return `${stageTexts[stage]}, ${isLocked ? 'locked ' : ''}${on ? 'on' : 'off'}`;
}
