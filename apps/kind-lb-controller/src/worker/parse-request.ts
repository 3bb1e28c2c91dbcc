import { messageOf, UsageError } from '@switchyard/core';
import type { WorkerRequest } from './protocol.ts';

/**
 * Reads a request. Throws `UsageError` for what is none. The spec is believed: it comes from a controller of the same version, or its container
 * would have been made anew.
 */
export function parseRequest(text: string): WorkerRequest {
  let request: Partial<WorkerRequest>;
  try {
    request = JSON.parse(text) as Partial<WorkerRequest>;
  } catch (cause) {
    throw new UsageError('worker.request', `standard input is not a request: ${messageOf(cause)}`, { cause });
  }
  if (request?.command === 'followHealth') return { command: 'followHealth' };
  if (request?.command === 'apply' && typeof request.spec === 'object' && typeof request.isPublished === 'boolean') {
    return { command: 'apply', spec: request.spec, isPublished: request.isPublished };
  }
  throw new UsageError('worker.request', 'standard input is not a request: there is no such command');
}
