import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { FakeEngine } from '../../src/testing/fake-engine.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

// The stream of events is a child process, whose library listens for signals too.
test.each(['SIGTERM', 'SIGINT'] as const)(
  'ends in order by %s while it follows the engine: what it holds is given back',
  async (signal) => {
    using engine = new FakeEngine([{ when: 'events *', lasts: 60 }, { when: 'ps *' }]);
    const args = ['--conditions=@switchyard/source', main, `--container-engine=${engine.program}`];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, ended] = [text(child.stderr), once(child, 'exit')];
    child.stdout.resume();
    await expect.poll(() => engine.calls.some((call) => call.startsWith('events '))).toBe(true);
    child.kill(signal);
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
    expect(await out).toContain('"msg":"stopped"');
  },
  30_000,
);
