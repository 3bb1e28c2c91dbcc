import { configReference } from './config-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { metricsReference } from './metrics-reference.ts';

/** A page of docs/generated. */
export interface GeneratedPage {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: () => string;
}

/** Every page that is made from tables in the code. */
export const pages: readonly GeneratedPage[] = [
  { path: 'docs/generated/config.md', text: configReference },
  { path: 'docs/generated/flags.md', text: flagsReference },
  { path: 'docs/generated/metrics.md', text: metricsReference },
];
