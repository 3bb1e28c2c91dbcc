/** Placeholder until the source lands. */
export const name = 'kubernetes';
