import { configReference } from './config-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { metricsReference } from './metrics-reference.ts';
import { parityPage } from './parity/page.ts';

/** A page that is made from the code. */
export interface GeneratedPage {
  /** From the root of the repository. */
  readonly path: string;
  /** The file's text. */
  readonly text: () => string;
}

/** Every page that is made from tables in the code. */
export const pages: readonly GeneratedPage[] = [
  { path: 'docs/generated/config.md', text: configReference },
  { path: 'docs/generated/flags.md', text: flagsReference },
  { path: 'docs/generated/metrics.md', text: metricsReference },
  { path: 'docs/kube-proxy-parity.md', text: parityPage },
];
