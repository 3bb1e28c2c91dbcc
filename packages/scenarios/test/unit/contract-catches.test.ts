import type { DataplaneBackend } from '@switchyard/core/engine';
import { describe, expect, test } from 'vitest';
import { allScenarios, type BackendHarness, backendContract } from '../../src/index.ts';
import { harnesses } from './harnesses.ts';

const { signal } = new AbortController();
type Defect = (honest: DataplaneBackend) => Partial<DataplaneBackend>;

/** A harness whose backends keep all promises but the one the defect breaks. */
function harnessWith(good: BackendHarness, defect: Defect): BackendHarness {
  return {
    name: 'defective',
    dataplane: good.dataplane,
    createKernel: () => {
      const kernel = good.createKernel();
      return {
        ...kernel,
        open: async (ipFamily, openSignal) => {
          const honest = await kernel.open(ipFamily, openSignal);
          const methods: DataplaneBackend = {
            name: honest.name,
            ipFamily,
            capabilities: honest.capabilities,
            observers: {},
            apply: (request, applySignal) => honest.apply(request, applySignal),
            cleanup: (cleanupSignal) => honest.cleanup(cleanupSignal),
            dump: (dumpSignal) => honest.dump(dumpSignal),
            [Symbol.asyncDispose]: () => honest[Symbol.asyncDispose](),
          };
          return { ...methods, ...defect(honest) };
        },
      };
    },
  };
}

let dumps = 0;

const defects: readonly {
  readonly title: string;
  readonly breaks: string;
  readonly defect: Defect;
}[] = [
  {
    title: 'claims a write each time',
    breaks: 'writes nothing when the kernel already has the table',
    defect: (honest) => ({
      apply: async (request, given) => {
        const outcome = await honest.apply(request, given);
        return outcome.status === 'applied' ? { ...outcome, writes: outcome.writes + 1 } : outcome;
      },
    }),
  },
  {
    title: 'clears the kernel when it starts',
    breaks: 'adopts what another instance wrote, without a write',
    defect: (honest) => {
      let isNew = true;
      return {
        apply: async (request, given) => {
          if (isNew) await honest.cleanup(given);
          isNew = false;
          return honest.apply(request, given);
        },
      };
    },
  },
  {
    title: 'ignores differences',
    breaks: 'reaches the same kernel by differences as in full',
    defect: (honest) => ({
      apply: async (request, given) =>
        request.scope.kind === 'full' ? honest.apply(request, given) : { status: 'applied', writes: 0 },
    }),
  },
  {
    title: 'numbers its dumps',
    breaks: 'says the same of the same forwarding, however it came about',
    defect: (honest) => ({ dump: async (given) => `${await honest.dump(given)}${++dumps}` }),
  },
  {
    title: 'gives up on everything when one service is refused',
    breaks: 'names the services the kernel refused, and writes all others',
    defect: (honest) => ({
      apply: async (request, given) => {
        const outcome = await honest.apply(request, given);
        if (outcome.status !== 'partial') return outcome;
        await honest.cleanup(given);
        return outcome;
      },
    }),
  },
  {
    title: 'hides that it was aborted',
    breaks: 'is as good as new after an aborted apply',
    defect: (honest) => ({
      apply: async (request, given) =>
        given.aborted ? { status: 'partial', writes: 0, failed: new Map() } : honest.apply(request, given),
    }),
  },
  {
    title: 'does not clean up',
    breaks: 'cleans up without memory, twice if need be, and leaves nothing',
    defect: () => ({ cleanup: async () => [] }),
  },
  {
    title: 'forgets when the rules were right',
    breaks: 'keeps the age of the rules for the next instance, or says that it cannot',
    defect: () => ({ observers: { age: { mark: async () => undefined, read: async () => undefined } } }),
  },
];

describe.each(harnesses)('the contract suite notices a backend ($name) that', (good) => {
  const scenario = allScenarios(good.dataplane).find(({ id }) => id === 'cluster-ip');

  test.each(defects)('$title', async ({ breaks, defect }) => {
    const clause = backendContract.find(({ promise }) => promise === breaks);
    const faults = await clause?.faults({ harness: harnessWith(good, defect), scenario: scenario! }, signal);
    expect(faults).not.toEqual([]);
    expect(faults).toBeDefined();
  });

  test('is there for every clause', () => {
    expect(defects.map(({ breaks }) => breaks)).toEqual(backendContract.map(({ promise }) => promise));
  });
});
