import type { ProfileCell } from './profile-cell.ts';

/** The measurement of all profiles that the page is made from. */
export interface ProfileFigures {
  /** One line about the machine. */
  readonly machine: string;
  readonly runtime: 'process' | 'docker';
  readonly timeScale: number;
  /** Requests per second, unscaled. */
  readonly rate: number;
  readonly cells: readonly ProfileCell[];
}

/** The page of the figures: one row per profile and drain time, the fallback off and on beside each other. */
export function profilePage(figures: ProfileFigures): string {
  const { cells, rate, timeScale, machine, runtime } = figures;
  const errors = cells.map((cell) => Math.abs(cell.lost - cell.predictedFromEvents));
  const mean = errors.reduce((sum, error) => sum + error, 0) / Math.max(1, errors.length);
  const within = cells.filter((cell) => cell.isWithin).length;
  const scale =
    timeScale === 1 ? '' : `; all durations were multiplied by ${timeScale}, figures are those of real time`;
  return `# What a rolling update loses behind each health-check profile

<!-- Made by ./dev bench profiles from what it measured. Do not edit. -->

One replica moves from one node to the other, \`externalTrafficPolicy: Local\`, ${rate} requests per second in an open loop, 500 ms each.
*serves on*: how long the app goes on serving after SIGTERM. *fallback*: the terminating fallback of the nodes' proxies (KEP-1669):
off is Kubernetes <= 1.25, on is >= 1.26. *lost* (in how many seconds) is measured. *predicted* is what core's model says before the rollout,
from the profile and the app alone, best to worst: it depends on the phase of the checks.

${table(cells)}

${within} of ${cells.length} rollouts lost what was predicted. From the event times of each rollout (node stops answering, new node UP, old node DOWN)
the model errs by ${mean.toFixed(1)} requests in the mean, ${Math.max(0, ...errors)} at most.

Measured with HAProxy as a ${runtime === 'docker' ? 'container of a Docker Engine' : 'process'}, agents in the nftables mode, on ${machine}${scale}.
\`./dev bench profiles\` measures it again.
`;
}

function table(cells: readonly ProfileCell[]): string {
  const head = ['profile', 'serves on', 'fallback off: lost', 'predicted', 'fallback on: lost', 'predicted'];
  const rows = rowsOf(cells).map(({ profile, drain, off, on }) => [
    profile,
    `${drain} s`,
    ...[off, on].flatMap((cell) => [lostText(cell), predictedText(cell)]),
  ]);
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

interface Row {
  readonly profile: string;
  readonly drain: number;
  readonly off: ProfileCell | undefined;
  readonly on: ProfileCell | undefined;
}

/** In the order of the cells. */
function rowsOf(cells: readonly ProfileCell[]): readonly Row[] {
  const keyOf = (cell: ProfileCell): string => `${cell.profile} ${cell.drain}`;
  const groups = Map.groupBy(cells, keyOf);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { profile, interval, fall, drain } = first;
    const off = group.find((cell) => !cell.terminatingFallback);
    const on = group.find((cell) => cell.terminatingFallback);
    return [{ profile: `${profile} (${interval} s × ${fall})`, drain, off, on }];
  });
}

function lostText(cell: ProfileCell | undefined): string {
  if (cell === undefined) return '-';
  return cell.lost === 0 ? '**0**' : `**${cell.lost}** (${cell.lossWindow} s)`;
}

function predictedText(cell: ProfileCell | undefined): string {
  if (cell === undefined) return '-';
  const { best, worst } = cell.predicted;
  const range = best === worst ? `${Math.round(best)}` : `${Math.round(best)}–${Math.round(worst)}`;
  return cell.isWithin ? range : `${range} (outside)`;
}
