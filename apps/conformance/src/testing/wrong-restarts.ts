import { millis } from '@switchyard/core';
import {
  flushes,
  keepsOldEndpoints,
  keepsOldServices,
  onlyOnStart,
  startsEmpty,
  type WrongRow,
} from './wrong-parts.ts';

/** Proxies that end or begin wrongly. */
export const wrongRestarts: readonly WrongRow[] = [
  ['restart-under-load', 'takes its rules with it', flushes, /^killed\/outside by nodePort$/],
  ['restart-under-load', 'begins by emptying the kernel', startsEmpty, /^stopped\/pod by clusterIP$/],
  [
    'restart-under-load',
    'loses a request at the start',
    { lostBy: (cause) => (cause === 'start' ? 1 : 0) },
    /^killed\/outside/,
  ],
  [
    'restart-under-load',
    'loses a request when told to stop',
    { lostBy: (cause) => (cause === 'stop' ? 1 : 0) },
    /^stopped\/outside/,
  ],
  [
    'restart-under-load',
    'forgets an endpoint at the start',
    onlyOnStart((wanted) => ({ ...wanted, endpoints: wanted.endpoints.slice(1) })),
    /afterwards/,
  ],

  ['agent-down', 'takes its rules with it', flushes, /^away\/.*still answers/],
  ['agent-down', 'changes rules though it is dead', { followsWhileDown: true }, /^away\/a replaced endpoint/],
  ['agent-down', 'leaves what changed meanwhile', onlyOnStart((_, kernel) => kernel), /^back\/the new/],
  ['agent-down', 'leaves a Service that went meanwhile', onlyOnStart(keepsOldServices), /^back\/the removed Service/],
  ['agent-down', 'needs 1.01 s', { startsWithin: millis(1010) }, /^first answer/],
  [
    'agent-down',
    'loses a request at the start',
    { lostBy: (cause) => (cause === 'start' ? 1 : 0) },
    /^away\/pod by clusterIP/,
  ],

  ['stale-after-restart', 'keeps endpoints that went meanwhile', keepsOldEndpoints, /^back\/NodePort/],
  ['stale-after-restart', 'takes its rules with it', flushes, /^dead\//],
  [
    'stale-after-restart',
    'leaves UDP clients at endpoints that are gone',
    { staleFlows: 'all' },
    /^back\/the UDP client/,
  ],

  ['many-changes-then-stop', 'takes its rules with it', flushes, /^killed\/outside/],
  [
    'many-changes-then-stop',
    'does not make up for what changed',
    onlyOnStart((_, kernel) => kernel),
    /^killed\/the last endpoint/,
  ],
  ['many-changes-then-stop', 'keeps endpoints that went meanwhile', keepsOldEndpoints, /^stopped\/the last endpoint/],
  [
    'many-changes-then-stop',
    'keeps a Service that went',
    {
      apply: keepsOldServices,
    },
    /came and went/,
  ],
];
