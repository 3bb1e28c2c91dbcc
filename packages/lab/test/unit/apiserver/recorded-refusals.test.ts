import { describe, expect, test } from 'vitest';
import { fixture, startHarness, type Wire } from './harness.ts';

// Texts that come from the inside of Go's JSON and selector parsers are compared by their beginning only.
const byBeginning = [
  /^invalid continue token: continue key is not valid: /,
  /^406: Not Acceptable\n\nAvailable representations: /,
];

interface Refusal {
  readonly method: string;
  readonly target: string;
  readonly accept: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: Wire;
}

const refusals: readonly Refusal[] = fixture('refusals.json').refusals.filter(
  (refusal: Wire) => !refusal.accept.includes('protobuf'),
);

describe('refusals recorded from kube-apiserver 1.36.2', () => {
  test.each(refusals)(
    '$method $target answers $status',
    async ({ method, target, accept, status, contentType, body }) => {
      await using api = await startHarness();
      await api.service('web');
      const reply = await api.send(method, target, undefined, { accept });
      expect(reply.status).toBe(status);
      expect(reply.headers['content-type']).toBe(contentType);
      if (typeof body === 'string') {
        expect(reply.text).toBe(body);
        return;
      }
      expect(shortened(reply.body)).toEqual(shortened(body));
    },
  );
});

function shortened(body: Wire): Wire {
  const beginning = byBeginning.map((pattern) => pattern.exec(body.message)?.[0]).find(Boolean);
  return beginning === undefined ? body : { ...body, message: beginning };
}
