import { messageOf } from '@switchyard/core';
import type { IncomingMessage } from 'node:http';
import { parse as parseYaml } from 'yaml';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { decodeProtobuf } from '../protobuf/decode-protobuf.ts';
import { badRequest, StatusError, unsupportedMediaType } from '../status-error.ts';

/** A request's body, not yet parsed. */
export interface RequestBody {
  readonly bytes: Buffer;
  /** Without parameters; `application/json` when the client named none. */
  readonly contentType: string;
}

/** Larger bodies are refused with 413, as the real server does (3 MiB). */
const limit = 3 * 1024 * 1024;

/** Reads the whole body. */
export async function readBody(request: IncomingMessage): Promise<RequestBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > limit) {
      const message = `Request entity too large: limit is ${limit}`;
      throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message });
    }
    chunks.push(bytes);
  }
  const contentType = (request.headers['content-type'] ?? 'application/json').split(';')[0]?.trim() ?? '';
  return { bytes: Buffer.concat(chunks), contentType };
}

/** The body as an object; rejects with 400 for what cannot be parsed and 415 for other media types. */
export function parseBody(body: RequestBody): JsonObject {
  const value = parseText(body);
  if (!isJsonObject(value)) {
    throw badRequest(
      "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct",
    );
  }
  return value;
}

/** The body as any JSON value; rejects with 400 when it is none. */
export function parseJson(body: RequestBody): Json {
  return parseText({ ...body, contentType: 'application/json' }) as Json;
}

function parseText(body: RequestBody): unknown {
  try {
    if (body.contentType === 'application/json' || body.contentType === '')
      return JSON.parse(body.bytes.toString('utf8'));
    if (body.contentType === 'application/yaml') return parseYaml(body.bytes.toString('utf8'));
    if (body.contentType === 'application/vnd.kubernetes.protobuf') {
      const decoded = decodeProtobuf(body.bytes);
      if (decoded !== undefined) return decoded;
    }
  } catch (cause) {
    const detail = messageOf(cause);
    throw badRequest(`error decoding the body of the request: ${detail}`);
  }
  throw unsupportedMediaType(
    'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml',
  );
}
