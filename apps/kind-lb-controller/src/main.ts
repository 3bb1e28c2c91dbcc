/** Placeholder until the app lands. */
export const appName = 'kind-lb-controller';
