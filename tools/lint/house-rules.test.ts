import assert from 'node:assert/strict';
import { test } from 'vitest';
import { faultsIn } from './house-rules.ts';
import { parseSource } from './source-files.ts';

const faultsOf = (path: string, text: string): readonly string[] => faultsIn(parseSource(path, text));

test('ambient names are refused outside the edges, and only in code', () => {
  const path = 'packages/core/src/model/policy/x.ts';
  assert.equal(faultsOf(path, 'const a = Date.now();').length, 1);
  assert.equal(faultsOf(path, '/* lines\n\n */ const a = Math.random();')[0]?.split(':')[1], '3');
  assert.deepEqual(faultsOf(path, "// Date.now()\nconst a = 'Date.now()';"), []);
  assert.deepEqual(faultsOf('packages/host/src/x.ts', 'const a = Date.now();'), []);
  assert.equal(faultsOf(path, 'timers.setTimeout(later, 5);').length, 1);
  assert.deepEqual(faultsOf(path, 'socket.setTimeout(5);'), []);
});

test('a backend that decides policy is refused', () => {
  const path = 'packages/backend-nftables/src/x.ts';
  assert.equal(faultsOf(path, "if (to === 'Local') x();").length, 1);
  assert.equal(faultsOf(path, 'if (endpoint.terminating) x();').length, 1);
  assert.deepEqual(faultsOf(path, "if (decision.kind === 'drop') x();"), []);
});

test('a decision by the name of a mode is refused outside the backends and the registry', () => {
  const text = "if (mode === 'ebpf') x();";
  assert.equal(faultsOf('packages/core/src/model/x.ts', text).length, 1);
  assert.equal(faultsOf('apps/node-agent/src/agent.ts', text).length, 1);
  assert.deepEqual(faultsOf('packages/backend-ebpf/src/x.ts', text), []);
  assert.deepEqual(faultsOf('apps/node-agent/src/backends.ts', text), []);
  assert.deepEqual(faultsOf('packages/core/src/model/x.ts', "const program = 'iptables-save';"), []);
});
