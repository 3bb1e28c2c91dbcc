/**
 * A process of its own for tests: applies rules in a network namespace (first argument) while it watches for foreign changes, lets
 * another process add a rule, and prints as JSON what was reported before and after.
 */
import { type Drift } from '@switchyard/core/engine';
import { millis, noopLogger, seconds, systemClock } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { createCommandRunner, type CommandRunner } from '@switchyard/host';
import { iptablesBackend } from '../../src/index.ts';

const [netns = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const machine = createCommandRunner();
const runner: CommandRunner = {
  run: (file, args, options) => machine.run('nsenter', [`--net=${netns}`, '--', file, ...args], options),
};
const backend = await iptablesBackend.open(
  {
    runner,
    logger: noopLogger,
    variant: 'nft',
    masqueradeBit: 14,
    localhostNodePorts: true,
    tcpBeLiberal: false,
    syncPeriod: seconds(30),
    netns,
  },
  'IPv4',
  signal,
);
const reports: Drift[] = [];
const stop = new AbortController();
const watching = backend.observers.drift?.((drift) => reports.push(drift), stop.signal);
const table = situation({ cart: { endpoints: [there('10.244.2.1')] } });
const outcome = await backend.apply({ table, scope: { kind: 'full' } }, signal);
await systemClock.sleep(millis(500), signal);
const before = reports.splice(0);
await runner.run('iptables-nft', ['-t', 'nat', '-I', 'KUBE-SERVICES', '-j', 'RETURN'], {
  timeout: seconds(30),
  signal,
});
await systemClock.sleep(millis(500), signal);
process.stdout.write(JSON.stringify({ outcome, pid: process.pid, before, after: reports }));
stop.abort();
await watching;
