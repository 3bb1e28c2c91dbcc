import { InvariantError } from '@switchyard/core';

/**
 * Stands in for undici in the bundle (`--alias:undici`). The Kubernetes client library imports it for
 * requests of its own; the agent uses the library only to read kubeconfig files and makes its
 * requests with node:https. Loading it would cost 4 MB of resident memory for nothing.
 */
function refuse(): never {
  throw new InvariantError('undici is not part of this bundle; the agent makes no requests with it');
}

export { refuse as Agent, refuse as ProxyAgent, refuse as fetch };
