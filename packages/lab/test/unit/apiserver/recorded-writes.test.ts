import { describe, expect, test } from 'vitest';
import { resourceTable } from '../../../src/apiserver/resources/resource-table.ts';
import { fixture, startHarness, withoutNulls, type Wire } from './harness.ts';

// Each recorded write of kubectl is sent to a server that holds what the real server held before it.
// The answer must be the recorded one, but for what every server chooses itself.

interface RecordedWrite {
  readonly title: string;
  readonly before: readonly Wire[];
  readonly request: {
    readonly method: string;
    readonly target: string;
    readonly contentType: string;
    readonly body: Wire;
  };
  readonly response: { readonly status: number; readonly body: Wire; readonly warning?: string };
}

const writes: readonly RecordedWrite[] = fixture('writes.json').writes.map((write: Wire, index: number) => ({
  ...write,
  title: `${index + 1}: kubectl ${write.command}: ${write.request.method} answers ${write.response.status}`,
}));

describe('writes recorded from kube-apiserver 1.36.2', () => {
  test.each(writes)('$title', async ({ before, request, response }) => {
    await using api = await startHarness();
    let body = request.body;
    for (const object of before) {
      const resource = resourceTable.find((row) => row.kind === object.kind)!;
      const stored = api.server.store.put(resource, object);
      // A body that was read from the recorded state carries its version; here it has another.
      if (body?.metadata?.resourceVersion === object.metadata.resourceVersion) {
        const metadata = { ...body.metadata, resourceVersion: String(stored.resourceVersion) };
        body = { ...body, metadata };
      }
    }
    const type = request.contentType === '' ? 'application/json' : request.contentType;
    const reply = await api.send(request.method, request.target, body, { 'content-type': type });
    const isCreation = request.method === 'POST';
    expect(normalised(reply.body, isCreation)).toEqual(normalised(response.body, isCreation));
    expect(reply.status).toBe(response.status);
    expect(reply.headers.warning).toBe(response.warning);
  });
});

const chosenByServer = ['resourceVersion', 'uid', 'creationTimestamp', 'deletionTimestamp'];

function normalised(body: Wire, isCreation: boolean): Wire {
  const copy = structuredClone(withoutNulls(body));
  for (const field of chosenByServer) if (copy.metadata?.[field] !== undefined) copy.metadata[field] = field;
  if (isCreation && copy.kind === 'Service') {
    const { spec } = copy;
    for (const field of ['clusterIP', 'clusterIPs', 'healthCheckNodePort']) if (spec[field]) spec[field] = field;
    for (const port of spec.ports ?? []) if (port.nodePort) port.nodePort = 'nodePort';
  }
  return copy;
}
