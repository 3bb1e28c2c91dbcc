import { systemClock } from '@switchyard/core';
import { anonymousConnection, newObjectClient, type ObjectClient } from '@switchyard/core/kubernetes';

/** Makes a client of a lab's API server, for example `http://10.0.0.1:6443`; sends nothing yet. */
export function createApiClient(options: { readonly url: string; readonly name?: string }): ObjectClient {
  const { url, name: userAgent = 'switchyard-lab' } = options;
  return newObjectClient(anonymousConnection(new URL(url)), { clock: systemClock, userAgent });
}
