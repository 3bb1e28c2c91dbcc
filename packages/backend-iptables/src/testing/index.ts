export * from './fake-iptables.ts';
export * from './trace-packet.ts';
export * from './faulty-runner.ts';
export { type FakeChain, type FakeEntry, FakeTable } from './fake-table.ts';
export { parseRule } from './parse-rule.ts';
export { splitWords } from './split-words.ts';
export type { FakeRule, Match, Target } from './rule-types.ts';
