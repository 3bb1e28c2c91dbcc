import { configReference } from './config-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { metricsReference } from './metrics-reference.ts';
import { withParityCounts } from './parity-counts.ts';

/** A page that is made from the code, or has a part that is. */
export interface GeneratedPage {
  /** From the root of the repository. */
  readonly path: string;
  /** What the file should say. It is given what it says now, empty if it is missing, for pages of which only a part is made. */
  readonly text: (found: string) => string;
}

/** Every page that is made from tables in the code. */
export const pages: readonly GeneratedPage[] = [
  { path: 'docs/generated/config.md', text: configReference },
  { path: 'docs/generated/flags.md', text: flagsReference },
  { path: 'docs/generated/metrics.md', text: metricsReference },
  { path: 'docs/kube-proxy-parity.md', text: withParityCounts },
];
