import type { PacketLoss, RunRecord, RunSummary } from '../run-record.ts';

/** Sentences about the packets that agents saw dropped: first how far they agree with the model, then each cause. Empty if nothing watched. */
export function packetLossTexts({ packetLosses }: RunRecord, { comparison }: RunSummary): readonly string[] {
  if (comparison === undefined || packetLosses === undefined) return [];
  if (comparison.status === 'unwatched') return [`packets were not watched: ${comparison.why}`];
  const { seen, atNodes } = comparison;
  const agreement = `${seen} of ${atNodes} requests lost at a node, by the agents that watch its kernel`;
  const losses = packetLosses.status === 'watched' ? packetLosses.losses : [];
  return [
    agreement,
    ...summed(losses).map(({ node, cause, why, count }) => `${node}: ${count} packets ${cause}, ${why}`),
  ];
}

/** Equal ones are one, with their sum. */
function summed(losses: readonly PacketLoss[]): readonly PacketLoss[] {
  const sums = new Map<string, PacketLoss>();
  for (const loss of losses) {
    const key = [loss.node, loss.cause, loss.why].join('\n');
    sums.set(key, { ...loss, count: loss.count + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()];
}
