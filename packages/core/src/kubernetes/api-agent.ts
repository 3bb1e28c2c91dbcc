import * as http from 'node:http';
import * as https from 'node:https';
import type { ApiServerConnection } from './api-server-connection.ts';

/** For a request or an agent of node:https: whom the API server is believed to be, and who we are. */
export function tlsOptionsOf({ tls }: Pick<ApiServerConnection, 'tls'>): https.AgentOptions {
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    rejectUnauthorized: !tls.insecureSkipVerify,
  };
}

/** Connections to an API server that are kept and shared. The caller destroys it. */
export function newApiAgent(connection: ApiServerConnection, settings: http.AgentOptions): http.Agent {
  if (connection.url.protocol !== 'https:') return new http.Agent(settings);
  return new https.Agent({ ...settings, ...tlsOptionsOf(connection) });
}
