import type { Meaning } from '../../../../src/config/schema/field.ts';

/** The Kubernetes releases that the tables compare with. */
export const comparedReleases = ['1.36', '1.37', '1.38'] as const;

/** One of the compared releases. */
export type Release = (typeof comparedReleases)[number];

/** Every way in which the agent can stand beside kube-proxy. */
export const standings = ['same', 'better', 'different', 'no effect', 'missing'] as const;

/** How the agent stands beside kube-proxy in one row. */
export type Standing = (typeof standings)[number];

/** Releases whose kube-proxy has something: all compared ones unless a bound is set. Both bounds are included. */
export interface ReleaseRange {
  readonly since?: Release;
  readonly until?: Release;
}

/** One comparison with kube-proxy. */
export interface ParityRow extends ReleaseRange {
  /** Markdown. */
  readonly what: string;
  readonly standing: Standing;
  /** Markdown. May be empty only where nothing differs. */
  readonly note: string;
}

/** The range as text: `1.36 to 1.38`, `from 1.37`, `up to 1.37`, or a single release. */
export function releaseText({ since = '1.36', until = '1.38' }: ReleaseRange): string {
  if (since === until) return since;
  if (since !== '1.36') return until === '1.38' ? `from ${since}` : `${since} to ${until}`;
  return until === '1.38' ? '1.36 to 1.38' : `up to ${until}`;
}

/** Standing and note of a flag or field. A setting with refused values is different. */
export function standingOf(meaning: Meaning): Pick<ParityRow, 'standing' | 'note'> {
  switch (meaning.kind) {
    case 'same':
      return { standing: 'same', note: '' };
    case 'better':
    case 'different':
      return { standing: meaning.kind, note: meaning.how };
    case 'ignored':
      return { standing: 'no effect', note: meaning.why };
    case 'refused':
      return { standing: 'different', note: meaning.why };
  }
}

/** Number of rows per standing, in the order of `standings`. */
export function countStandings(rows: readonly Pick<ParityRow, 'standing'>[]): readonly number[] {
  return standings.map((one) => rows.filter(({ standing }) => standing === one).length);
}
