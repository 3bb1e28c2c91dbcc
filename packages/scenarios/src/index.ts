/** Placeholder until the first export lands. */
export const packageName = '@switchyard/scenarios';
