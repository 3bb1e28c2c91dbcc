import type * as http from 'node:http';

/**
 * node:http for programs that start by the hundred. An `import` of it reads all its exports and so loads WebSocket, which doubles
 * the CPU of such a start.
 */
const lean: typeof http = process.getBuiltinModule('node:http');
export const createServer: typeof http.createServer = lean.createServer;
export const request: typeof http.request = lean.request;
