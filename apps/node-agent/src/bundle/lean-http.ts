import type * as nodeHttp from 'node:http';

/**
 * Stands in for node:http in the bundle (`--alias:http`, `--alias:node:http`): the same module without
 * its lazy exports. An ES module import of a built-in reads every export once, so importing node:http
 * loads WebSocket and all it needs: 8 MB more of resident memory on Node 24.
 */
const http: typeof nodeHttp = process.getBuiltinModule('node:http');

export const Agent: typeof nodeHttp.Agent = http.Agent;
export const ClientRequest: typeof nodeHttp.ClientRequest = http.ClientRequest;
export const IncomingMessage: typeof nodeHttp.IncomingMessage = http.IncomingMessage;
export const Server: typeof nodeHttp.Server = http.Server;
export const ServerResponse: typeof nodeHttp.ServerResponse = http.ServerResponse;
export const STATUS_CODES: typeof nodeHttp.STATUS_CODES = http.STATUS_CODES;
export const createServer: typeof nodeHttp.createServer = http.createServer;
export const get: typeof nodeHttp.get = http.get;
export const globalAgent: typeof nodeHttp.globalAgent = http.globalAgent;
export const request: typeof nodeHttp.request = http.request;
// oxlint-disable-next-line import/no-default-export -- node:http has one, and libraries use it
export default http;
