import type { RunSummary } from '../run-summary.ts';

const causeTexts: Readonly<Record<string, string>> = {
  droppedByNodeAlone: 'dropped by the node, no other UP',
  droppedByNodeShared: 'dropped by the node, half of the traffic',
  noServerUp: 'no server UP',
  appGone: 'app gone',
  unexplained: 'unexplained',
};

/** A cause in words. */
export function causeText(cause: string): string {
  return causeTexts[cause] ?? cause;
}

/** Header and one row per run: what the terminal and the page both show. */
export function resultRows(summaries: readonly RunSummary[]): readonly (readonly string[])[] {
  const head = ['terminating fallback', 'requests', 'answered', 'lost', 'loss window', 'model predicts', 'first loss'];
  return [
    head,
    ...summaries.map((summary) => [
      summary.terminatingFallback ? 'on (Kubernetes >= 1.26)' : 'off (Kubernetes <= 1.25)',
      String(summary.requests),
      String(summary.answered),
      String(summary.lost),
      summary.lossWindow === undefined
        ? '-'
        : `${summary.lossWindowSeconds.toFixed(1)} s (+${summary.lossWindow.from.toFixed(2)}..+${summary.lossWindow.to.toFixed(2)})`,
      String(summary.predictedLost),
      summary.firstLoss === undefined ? '-' : causeText(summary.firstLoss.cause),
    ]),
  ];
}

/** The rows as aligned text. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd();
  const rule = widths.map((columnWidth) => '-'.repeat(columnWidth)).join('   ');
  return rows.map((row, index) => (index === 0 ? `${line(row)}\n${rule}` : line(row))).join('\n');
}
