/** Stages of kube-proxy 1.36's feature gates, where they are not general availability, which is spelled as nothing. */
const stages: ReadonlyMap<string, string> = new Map([
  ['ComponentFlagz', 'BETA'],
  ['ComponentStatusz', 'BETA'],
  ['ContextualLogging', 'BETA'],
  ['LoggingAlphaOptions', 'ALPHA'],
  ['LoggingBetaOptions', 'BETA'],
  ['NativeHistograms', 'ALPHA'],
  ['AllAlpha', 'ALPHA'],
  ['AllBeta', 'BETA'],
]);

/** The label `stage` of a gate. */
export function stageOf(gate: string): string {
  return stages.get(gate) ?? '';
}
