import { causeText } from '@switchyard/rollout';
import type { RolloutTimeline } from '../model/report-file.ts';

/** `142 of 740 requests lost, 143 predicted: dropped by the node, no other UP 55, ...`. */
export function rolloutLine({ requests, lost, predictedLost, lostByCause }: RolloutTimeline): string {
  const { least, most } = predictedLost;
  const predicted = least === most ? `${least}` : `${least} to ${most}`;
  const causes = Object.entries(lostByCause)
    .filter(([, count]) => count > 0)
    .map(([cause, count]) => `${causeText(cause)} ${count}`);
  const why = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
  return `${lost} of ${requests} requests lost, ${predicted} predicted${why}`;
}
