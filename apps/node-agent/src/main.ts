/** Placeholder until the app lands. */
export const appName = 'node-agent';
